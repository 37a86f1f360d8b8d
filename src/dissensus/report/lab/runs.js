// Two finished runs side by side: their settings, and their training curves where these were stored.

function showRuns(runs) {
  const box = $("#compare");
  const charts = Object.fromEntries(["validation", "loss"].map((name) => {
    const chart = new Chart($(`#${name} .plot`), { lines: [] });
    downloadButtons(name, chart, () => chart.csv());
    return [name, chart];
  }));
  const only = $("#different");
  const pick = (name, start) => {
    const select = make("select", { id: `run-${name}` });
    runs.forEach((run, i) => select.append(make("option", { value: i }, run.name)));
    select.value = start;
    select.addEventListener("change", update);
    only.parentElement.before(make("label", { for: select.id }, `Run ${name}`), select);
    return () => runs[select.value];
  };
  only.addEventListener("change", update);
  const chosen = [pick("A", 0), pick("B", Math.min(1, runs.length - 1))];
  update();

  function update() {
    const pair = chosen.map((of) => of());
    const names = [...new Set(pair.flatMap((run) => Object.keys(run.settings)))];
    const rows = names.map((name) => [name, ...pair.map((run) => run.settings[name] ?? "–")]).filter(([, a, b]) => !only.checked || a !== b);
    const cells = rows.map(([name, ...values]) =>
      make("tr", values[0] === values[1] ? {} : { class: "differs" }, make("th", { scope: "row" }, name), ...values.map((value) => make("td", {}, value))),
    );
    box.querySelector("tbody").replaceChildren(...cells);
    $("#same").textContent = rows.length ? "" : "All settings are equal.";
    let drawn = 0;
    for (const [name, chart] of Object.entries(charts)) {
      const lines = pair.flatMap((run, k) => {
        const values = run.history[name] || [];
        return values.length ? [{ name: `run ${"AB"[k]}`, x: values.map((_, i) => i + 1), y: values, colour: `s${k}`, dashed: k > 0 }] : [];
      });
      drawn += lines.length;
      chart.update({ title: name, describe: `Training curve of both runs: ${name} against epoch`, xLabel: "epoch", yLabel: name, lines });
    }
    $("#curves").hidden = !drawn;
    $("#no-curves").hidden = drawn > 0;
  }
}

document.addEventListener("DOMContentLoaded", () => {
  themeSwitch();
  document.querySelector("form").addEventListener("submit", (event) => event.preventDefault());
  const lab = new Laboratory();
  document.querySelectorAll("#accuracy table").forEach(sortable);
  document.querySelectorAll("#runs .plot[data-chart]").forEach(storedChart);
  const stored = document.querySelector("#stored-runs");
  if (stored) showRuns(JSON.parse(stored.textContent));
  // For the browser's console, and for tests that compare with the package.
  window.lab = {
    view: lab, Chart, trajectory, communication, makeGraph, initialOpinions, leading, criticalAttention, reducedDiagram,
    relativeEnergy, effectiveRank,
  };
});

// Tables that are sorted by their heads.

// Without this script a heading is plain text; with it, the same text is a button.
const press = (element, action) => {
  const button = make("button", { type: "button" }, ...element.childNodes);
  button.addEventListener("click", action);
  element.append(button);
  return button;
};

const sortable = (table) => {
  const body = table.tBodies[0];
  const original = [...body.rows];
  if (original.length < 2) return;
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const opposite = { ascending: "descending", descending: "ascending" };
    const first = head.dataset.first || "ascending";
    press(head, () => {
      const now = head.getAttribute("aria-sort");
      const next = now === first ? opposite[first] : now ? null : first;
      for (const each of heads) each.removeAttribute("aria-sort");
      if (next) head.setAttribute("aria-sort", next);
      body.append(...(next ? sorted(original, column, next === "ascending" ? 1 : -1) : original));
    });
  });
};
const sorted = (rows, column, sign) => {
  const numeric = rows.some((row) => "value" in row.cells[column].dataset);
  const key = (row) => {
    const cell = row.cells[column];
    if (!numeric) return cell.textContent;
    return "value" in cell.dataset ? Number(cell.dataset.value.replace("inf", "Infinity")) : NaN;
  };
  const compare = (a, b) => {
    if (!numeric) return sign * a.localeCompare(b, undefined, { numeric: true });
    if (Number.isNaN(a) || Number.isNaN(b)) return Number.isNaN(a) - Number.isNaN(b);
    return a === b ? 0 : sign * (a < b ? -1 : 1);
  };
  return [...rows].sort((a, b) => compare(key(a), key(b)));
};

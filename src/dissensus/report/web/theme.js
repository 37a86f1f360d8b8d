// Colours: the stylesheet's variables, and the switch between light and dark.
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

const make = (tag, attributes = {}, ...children) => {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
};

// Calls `redraw` whenever the colours have changed: by the switch, by the system, or for paper.
const themeChanges = [];
const onTheme = (redraw) => themeChanges.push(redraw);

// Storage is refused to some pages opened from a file; the switch then lasts as long as the page.
const storedTheme = (value) => {
  try {
    if (value) localStorage.setItem("dissensus-theme", value);
    return localStorage.getItem("dissensus-theme");
  } catch {
    return null;
  }
};
// At once, before anything is drawn.
if (["light", "dark"].includes(storedTheme())) document.documentElement.dataset.theme = storedTheme();

function themeSwitch() {
  const root = document.documentElement;
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const other = () => ((root.dataset.theme || (dark.matches ? "dark" : "light")) === "dark" ? "light" : "dark");
  const button = make("button", { type: "button", class: "theme" });
  const icon = svgElement("svg", { viewBox: "0 0 24 24", "aria-hidden": "true" });
  icon.append(svgElement("path", { d: "M12 2a10 10 0 1 0 0 20a10 10 0 0 0 0-20Zm0 2.2v15.6a7.8 7.8 0 0 1 0-15.6Z" }));
  button.append(icon);
  const label = () => {
    button.setAttribute("aria-label", `Switch to ${other()} colours`);
    button.title = button.getAttribute("aria-label");
  };
  const changed = () => {
    label();
    for (const redraw of themeChanges) redraw();
  };
  button.addEventListener("click", () => {
    root.dataset.theme = other();
    storedTheme(root.dataset.theme);
    changed();
  });
  dark.addEventListener("change", changed);
  // Paper is white.
  let before;
  addEventListener("beforeprint", () => {
    before = root.dataset.theme;
    root.dataset.theme = "light";
    changed();
  });
  addEventListener("afterprint", () => {
    if (before) root.dataset.theme = before;
    else delete root.dataset.theme;
    changed();
  });
  label();
  document.querySelector("header").append(button);
}

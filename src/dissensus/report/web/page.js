// The report page.
document.addEventListener("DOMContentLoaded", () => {
  themeSwitch();
  document.querySelectorAll("main table").forEach(sortable);
  document.querySelectorAll(".plot[data-chart]").forEach(storedChart);
});

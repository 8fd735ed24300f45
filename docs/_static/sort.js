// A click on the head of a long table's column sorts the rows by it: figures from the largest down,
// words by the alphabet, empty cells last; a second click turns this around.
const LONG = 8;

function key(cell) {
  const text = cell.textContent.trim();
  const figure = parseFloat(text.replace(/[−–]/, "-").replace(/,/g, ""));
  return { text, figure };
}

function compare(a, b, numeric, up) {
  const [one, two] = [key(a), key(b)];
  if (!one.text || !two.text) return !one.text - !two.text;
  const order = numeric ? two.figure - one.figure : one.text.localeCompare(two.text);
  return up ? -order : order;
}

function sortBy(table, head, column) {
  const up = head.getAttribute("aria-sort") === "descending";
  const body = table.tBodies[0];
  const rows = [...body.rows];
  const given = rows.map((row) => key(row.cells[column])).filter((cell) => cell.text);
  const numeric = given.every((cell) => !Number.isNaN(cell.figure));
  rows.sort((a, b) => compare(a.cells[column], b.cells[column], numeric, up));
  body.append(...rows);
  table.querySelectorAll("th").forEach((other) => other.removeAttribute("aria-sort"));
  head.setAttribute("aria-sort", up ? "ascending" : "descending");
}

document.querySelectorAll(".bd-article table.table").forEach((table) => {
  if (!table.tHead || table.tBodies[0].rows.length < LONG) return;
  table.classList.add("sortable");
  [...table.tHead.rows[0].cells].forEach((head, column) => {
    head.tabIndex = 0;
    head.title = "Sort by this column";
    head.addEventListener("click", () => sortBy(table, head, column));
    head.addEventListener("keydown", (event) => event.key === "Enter" && sortBy(table, head, column));
  });
});

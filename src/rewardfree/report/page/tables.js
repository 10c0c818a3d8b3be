// The tables: a column for each cost on the chosen axis.
function tables() {
  const node = section("table", "Table",
    (single(Math.max) ? "Gaps of one run, which has no interval" : "Mean ± half of its interval (standard deviation across runs)") +
    (single(Math.min) && !single(Math.max) ? "; one run has none" : "") + ", for the choices made above. Bold: the smallest mean of a column, and a policy without data " +
    "that is no worse. Italic: between two checkpoints, read off the line. – : not run that far." +
    (hasRecorded() ? " The authors' recorded mean of the same algorithm, planned in the same way, follows in the row below." : ""));
  const holder = make("div", {});
  node.append(holder);
  redraws.push(() => {
    const shown = view.panels.map((panel) => [panel, panel.tables[state.planner][state.axis]]).filter(([, table]) => table);
    holder.replaceChildren(...shown.map(([panel, table]) => panelTable(panel, table)));
  });
}

function panelTable(panel, table) {
  const body = make("tbody", {});
  const row = (attributes, name, cells) => body.append(make("tr", attributes, make("th", { scope: "row" }, name), ...cells));
  for (const strategy of view.strategies) {
    const line = table.rows[strategy.key];
    if (!line) continue;
    row({ "data-row": strategy.key }, strategy.label, line[state.measure].map((cell, i) => {
      if (!cell) return make("td", {}, "–");
      const best = table.best[state.measure][i].includes(strategy.key);
      return make("td", { class: (best ? "best " : "") + (line.between[i] ? "between" : "") },
        make("span", {}, make(best ? "b" : "span", {}, digits(cell[0])), cell.length > 1 ? ` ± ${digits(cell[1])}` : ""),
        ...(cell.length > 1 ? [" ", make("small", {}, `(${digits(cell[2])})`)] : []));
    }));
    const theirs = recordedOf(panel, strategy, table.columns);
    if (theirs)
      row({ class: "authors" }, `the authors', ${theirs.runs} runs`, table.columns.map((n) => {
        const i = theirs.x.indexOf(n);
        return make("td", {}, i < 0 ? "–" : `${digits(theirs.y[i])} (${digits(theirs.sd[i])})`);
      }));
  }
  for (const level of panel.levels)
    row({ "data-level": level.key }, level.label, table.columns.map((_, i) => {
      const better = table.better[state.measure][i].includes(level.key);
      return make("td", { class: better ? "best" : "" }, make(better ? "b" : "span", {}, digits(level.gaps[state.measure])));
    }));
  return make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Table: " + panel.title }, make("table", { class: table.columns.length > 6 ? "dense" : "" },
    make("caption", {}, make("span", {}, `${panel.title}: ${view.measures[state.measure]}`)),
    make("thead", {}, make("tr", {}, make("th", { scope: "col" }, view.axes[state.axis]), ...table.columns.map((n) => make("th", { scope: "col" }, cost(n))))), body));
}

"use strict";
// Draws what the view says. Nothing here computes a result: numbers come from the view as they are.
(function () {
  const view = JSON.parse(document.getElementById("view").textContent);
  const main = document.getElementById("main");
  const state = { axis: "samples", measure: "start", planner: null, hidden: new Set(), maps: {} };
  const redraws = [];
  const FONT = { family: "system-ui, -apple-system, Segoe UI, Roboto, sans-serif", size: 12, color: "#1d2430" };
  const OPTIONS = { displayModeBar: false, responsive: true };

  function make(tag, attributes, ...children) {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {})) {
      if (name === "class") node.className = value;
      else if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
      else node.setAttribute(name, value);
    }
    for (const child of children) if (child !== null) node.append(child);
    return node;
  }

  function section(id, title, lead) {
    const node = make("section", { id, "aria-labelledby": id + "-title" },
      make("h2", { id: id + "-title" }, title), lead ? make("p", { class: "lead" }, lead) : null);
    main.append(node);
    document.getElementById("contents").append(make("a", { href: "#" + id }, title));
    return node;
  }

  // A row of radio buttons; `choose` is called with the key that was picked.
  function choices(name, legend, options, current, choose) {
    const row = make("span", { class: "choices" });
    for (const [key, text] of Object.entries(options)) {
      const input = make("input", { type: "radio", name, value: key, onchange: () => choose(key) });
      input.checked = key === current;
      row.append(make("label", {}, input, make("span", {}, text)));
    }
    return make("fieldset", { "data-switch": name }, make("legend", {}, legend), row);
  }

  const redraw = () => redraws.forEach((draw) => draw());
  const digits = (value) => (Math.abs(value) >= 100 ? value.toFixed(0) : value.toFixed(3));

  function layout(more) {
    return Object.assign({
      font: FONT, margin: { l: 52, r: 12, t: 34, b: 46 }, height: 330, hovermode: "closest", showlegend: false,
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    }, more);
  }

  const ASIS = "as recorded";
  // The planner of a line that is shown: one for all, or each algorithm's own in the authors' results.
  function isPlanned(line, panel) {
    if (state.planner !== ASIS) return line.planner === state.planner;
    const theirs = panel.recorded.find((each) => each.strategy === line.strategy);
    return line.planner === (theirs ? theirs.planner : "mean");
  }

  function curves() {
    const hasRecorded = view.panels.some((panel) => panel.recorded.length);
    const planners = Object.assign({}, view.planners, hasRecorded ? { [ASIS]: "as in the authors' results" } : {});
    state.planner = Object.keys(planners).includes("optimistic") ? "optimistic" : Object.keys(planners)[0];
    const node = section("curves", "Gap against samples, episodes or steps",
      `Mean over runs; bands are ${Math.round(100 * view.confidence)}% confidence intervals of the mean. ` +
      "Horizontal lines are policies that need no data. Hover over a curve for its numbers.");
    const pick = (name) => (key) => { state[name] = key; redraw(); };
    node.append(make("div", { class: "controls" },
      choices("axis", "Against", view.axes, state.axis, pick("axis")),
      choices("measure", "Shown", view.measures, state.measure, pick("measure")),
      choices("planner", "Planned with", planners, state.planner, pick("planner"))));
    const grid = make("div", { class: "panels" });
    node.append(grid, legend());
    const places = view.panels.map((panel) => {
      const place = make("div", { class: "plot", role: "img", "aria-label": "Gap curves: " + panel.title });
      grid.append(place);
      return place;
    });
    redraws.push(() => view.panels.forEach((panel, i) => drawCurves(places[i], panel)));
  }

  function drawCurves(place, panel) {
    const traces = [];
    for (const strategy of view.strategies) {
      if (state.hidden.has(strategy.key)) continue;
      const line = panel.lines.find((each) => each.strategy === strategy.key && isPlanned(each, panel));
      if (line && line[state.axis].every((value) => value > 0)) traces.push(...band(line, strategy));
      const theirs = panel.recorded.find((each) => each.strategy === strategy.key);
      if (theirs && state.planner === ASIS && state.axis === "samples" && state.measure === "start")
        traces.push({ x: theirs.samples, y: theirs.mean, mode: "markers", marker: { symbol: "x", size: 8, color: strategy.colour },
          hovertemplate: `authors' ${strategy.label}: %{y:.3f} at %{x}<extra></extra>` });
    }
    const shapes = [], notes = [];
    for (const level of panel.levels) {
      if (state.hidden.has(level.key)) continue;
      const colour = level.key === "myopic" ? "#000000" : "#999999";
      shapes.push({ type: "line", xref: "paper", x0: 0, x1: 1, y0: level.gaps[state.measure], y1: level.gaps[state.measure],
        line: { color: colour, width: 1.3, dash: level.key === "myopic" ? "dot" : "dashdot" } });
      notes.push({ xref: "paper", x: 1, xanchor: "right", y: level.gaps[state.measure], yanchor: "bottom", showarrow: false,
        text: `${level.key} ${digits(level.gaps[state.measure])}`, font: { size: 10, color: colour } });
    }
    const ticks = [...new Set(panel.lines.flatMap((line) => line[state.axis]))].filter((v) => v > 0).sort((a, b) => a - b);
    Plotly.react(place, traces, layout({
      title: { text: panel.title, font: { size: 14 }, x: 0.02 }, shapes, annotations: notes,
      xaxis: { title: { text: view.axes[state.axis], standoff: 8 }, type: "log", gridcolor: "#eceff2", zeroline: false,
        tickvals: state.axis === "samples" ? ticks : undefined, ticktext: state.axis === "samples" ? ticks.map(String) : undefined, dtick: state.axis === "samples" ? undefined : 1 },
      yaxis: { title: { text: view.measures[state.measure], standoff: 6 }, rangemode: "tozero", gridcolor: "#eceff2", zerolinecolor: "#c9d0d8" },
    }), OPTIONS);
  }

  function band(line, strategy) {
    const gaps = line.gaps[state.measure], x = line[state.axis];
    const top = gaps.mean.map((m, i) => m + gaps.half[i]), bottom = gaps.mean.map((m, i) => m - gaps.half[i]);
    const text = gaps.mean.map((m, i) => `${strategy.label}<br>${digits(m)} ± ${digits(gaps.half[i])} (sd ${digits(gaps.deviation[i])})<br>` +
      Object.entries(view.axes).filter(([key]) => line[key][i] > 0).map(([key, name]) => `${line[key][i].toLocaleString("en")} ${name}`).join("<br>") + `<br>${line.runs} runs`);
    return [
      { x: x.concat([...x].reverse()), y: top.concat(bottom.reverse()), fill: "toself", fillcolor: strategy.colour + "2b", line: { width: 0 }, hoverinfo: "skip", mode: "lines" },
      { x, y: gaps.mean, mode: "lines+markers", line: { color: strategy.colour, width: 2, dash: strategy.dash }, marker: { size: 5 }, text, hovertemplate: "%{text}<extra></extra>" },
    ];
  }

  function legend() {
    const list = make("ul", { class: "legend", "aria-label": "Curves: press to hide or show" });
    const entries = view.strategies.map((each) => [each.key, each.label, each.colour, each.dash]);
    for (const level of (view.panels[0] || { levels: [] }).levels)
      entries.push([level.key, level.label, level.key === "myopic" ? "#000000" : "#999999", "dot"]);
    for (const [key, text, colour, dash] of entries) {
      const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
      svg.setAttribute("width", "26"); svg.setAttribute("height", "10"); svg.setAttribute("aria-hidden", "true");
      svg.innerHTML = `<line x1="0" y1="5" x2="26" y2="5" stroke="${colour}" stroke-width="2.5" stroke-dasharray="${dash === "solid" ? "" : dash === "dot" ? "2 3" : "6 3"}"/>`;
      const button = make("button", { type: "button", "aria-pressed": "true", "data-curve": key, onclick: () => {
        state.hidden.has(key) ? state.hidden.delete(key) : state.hidden.add(key);
        button.setAttribute("aria-pressed", String(!state.hidden.has(key)));
        redraw();
      } }, svg, text);
      list.append(make("li", {}, button));
    }
    return list;
  }

  function table() {
    const node = section("table", "Table", "Mean ± half of its interval (standard deviation across runs), for the choice made above. " +
      "Where the authors' scripts recorded the same algorithm, planned in the same way, their mean follows in the row below.");
    const holder = make("div", {});
    node.append(holder);
    redraws.push(() => holder.replaceChildren(...view.panels.map(panelTable)));
  }

  function panelTable(panel) {
    const sizes = [...new Set(panel.lines.flatMap((line) => line.samples))].sort((a, b) => a - b);
    const body = make("tbody", {});
    for (const strategy of view.strategies) {
      const line = panel.lines.find((each) => each.strategy === strategy.key && isPlanned(each, panel));
      if (!line) continue;
      const gaps = line.gaps[state.measure];
      body.append(make("tr", {}, make("td", {}, strategy.label), ...sizes.map((n) => {
        const i = line.samples.indexOf(n);
        return i < 0 ? make("td", {}, "–") : make("td", {}, `${digits(gaps.mean[i])} ± ${digits(gaps.half[i])} `, make("small", {}, `(${digits(gaps.deviation[i])})`));
      })));
      const theirs = panel.recorded.find((each) => each.strategy === strategy.key && each.planner === line.planner);
      if (theirs && state.measure === "start")
        body.append(make("tr", {}, make("td", {}, make("small", {}, `   the authors', ${theirs.runs} runs`)), ...sizes.map((n) => {
          const i = theirs.samples.indexOf(n);
          return make("td", {}, make("small", {}, i < 0 ? "–" : `${digits(theirs.mean[i])} (${digits(theirs.deviation[i])})`));
        })));
    }
    for (const level of panel.levels)
      body.append(make("tr", {}, make("td", {}, level.label), make("td", { colspan: String(sizes.length) }, digits(level.gaps[state.measure]))));
    return make("div", { class: "scroll" }, make("table", {},
      make("caption", {}, `${panel.title}: ${view.measures[state.measure]}`),
      make("thead", {}, make("tr", {}, make("th", {}, "samples per step"), ...sizes.map((n) => make("th", {}, String(n))))), body));
  }

  function claims() {
    if (!view.claims || !view.claims.length) return;
    const node = section("claims", "What the paper claims, and what we find",
      "Each verdict follows from the rule beside it. The rules were stated in code after Figure 1 was known. " +
      "The thresholds 25%, 2 times and 80% are the first ones. One tie rule for all claims, “smallest” at every checkpoint and no verdict for the factor H came later. " +
      "Gaps are at the start, planned with the bonus.");
    const kinds = { "holds": "holds", "does not hold": "fails", "depends on the axis": "depends", "depends on axis or ties": "depends" };
    for (const each of view.claims)
      node.append(make("article", { class: "claim" },
        make("header", {}, make("span", { class: "chip " + (kinds[each.verdict] || "") }, each.verdict), make("h3", {}, each.claim)),
        make("p", {}, each.rule),
        each.found.length ? make("details", {}, make("summary", {}, each.number), make("ul", {}, ...each.found.map((line) => make("li", {}, line)))) : make("p", {}, each.number)));
  }

  function spread() {
    if (!view.spread || !view.spread.lines.length) return;
    const node = section("spread", "Spread over draws of the world",
      `Every line is one of ${view.spread.draws} draws of reward and transition law; it follows the switches above.`);
    const grid = make("div", { class: "panels" });
    node.append(grid);
    const kernels = [...new Set(view.spread.lines.map((line) => line.kernel))];
    const places = kernels.map((kernel) => {
      const place = make("div", { class: "plot", role: "img", "aria-label": "Draws: " + kernel });
      grid.append(place);
      return place;
    });
    redraws.push(() => kernels.forEach((kernel, k) => {
      const traces = [];
      for (const strategy of view.strategies) {
        if (state.hidden.has(strategy.key)) continue;
        const planner = state.planner === ASIS ? (strategy.key === "qiu" ? "optimistic" : "mean") : state.planner;
        const line = view.spread.lines.find((each) => each.kernel === kernel && each.strategy === strategy.key && each.planner === planner);
        if (!line || !line[state.axis].every((value) => value > 0)) continue;
        line.gaps[state.measure].forEach((gaps, draw) => traces.push({ x: line[state.axis], y: gaps, mode: "lines", line: { color: strategy.colour, width: 1, dash: strategy.dash }, opacity: 0.7,
          hovertemplate: `${strategy.label}, draw ${draw}: %{y:.3f}<extra></extra>` }));
      }
      Plotly.react(places[k], traces, layout({ title: { text: kernel, font: { size: 14 }, x: 0.02 },
        xaxis: { title: { text: view.axes[state.axis], standoff: 8 }, type: "log", gridcolor: "#eceff2", dtick: 1 },
        yaxis: { title: { text: view.measures[state.measure], standoff: 6 }, rangemode: "tozero", gridcolor: "#eceff2" } }), OPTIONS);
    }));
  }

  // Maps are stored as bytes, a number between two ends each.
  function bytes(map) {
    const raw = atob(map.bytes), rows = [];
    for (let r = 0; r < map.rows; r++) {
      const row = new Array(map.columns);
      for (let c = 0; c < map.columns; c++) row[c] = map.low + (map.high - map.low) * raw.charCodeAt(r * map.columns + c) / 255;
      rows.push(row);
    }
    return rows;
  }

  function maps() {
    const all = view.maps;
    if (!all || !all.length) return;
    const node = section("maps", "Inside one run",
      "The world, and what one run (its first seed) knew of it after N samples per step. Dots are the places where it looked at this step.");
    const now = state.maps;
    Object.assign(now, { world: 0, run: 0, size: all[0].runs[0].sizes.length - 1, step: 0 });
    const controls = make("div", { class: "controls" }), grid = make("div", { class: "maps" });
    node.append(controls, grid);
    const names = ["reward", "law", "sigma", "value", "policy"];
    const places = Object.fromEntries(names.map((name) => {
      const place = make("div", { class: "plot", role: "img", "data-map": name });
      grid.append(place);
      return [name, place];
    }));
    const output = make("output", {});
    const slider = make("input", { type: "range", min: "0", step: "1", "aria-label": "samples per step", oninput: () => { now.size = Number(slider.value); draw(); } });
    const pick = (name, change) => (key) => { now[name] = Number(key); if (change) change(); draw(); };
    const index = (list) => Object.fromEntries(list.map((text, i) => [String(i), text]));
    controls.append(
      choices("world", "World", index(all.map((each) => each.title)), "0", pick("world")),
      choices("run", "Explorer", index(all[0].runs.map((each) => each.label)), "0", pick("run")),
      choices("step", "Step", index(all[0].steps.map((h) => "h = " + h)), "0", pick("step")),
      make("label", { class: "slider" }, "N", slider, output));
    function draw() {
      const world = all[now.world], run = world.runs[Math.min(now.run, world.runs.length - 1)];
      slider.max = String(run.sizes.length - 1);
      now.size = Math.min(now.size, run.sizes.length - 1);
      slider.value = String(now.size);
      output.textContent = run.sizes[now.size] + " samples";
      const moment = run.moments[now.size], at = moment.steps[now.step];
      heat(places.reward, world.reward, "reward r(s, a)", world, "action a");
      heat(places.law, world.law, `P(s' | s, a = ${world.law_action.toFixed(2)})`, world, "next state s'");
      heat(places.sigma, at.sigma, `σ at h = ${world.steps[now.step]}`, world, "action a", at.visited);
      heat(places.value, moment.value, "the plan's V", world, "state s", null, "step h");
      heat(places.policy, moment.policy, "the plan's action", world, "state s", null, "step h");
    }
    redraws.push(draw);
  }

  function heat(place, map, title, world, across, visited, down) {
    const z = bytes(map), H = map.rows;
    const x = Array.from({ length: map.columns }, (_, i) => (map.columns > 1 ? i / (map.columns - 1) : 0));
    const y = down ? Array.from({ length: H }, (_, i) => i + 1) : Array.from({ length: H }, (_, i) => (H > 1 ? i / (H - 1) : 0));
    const traces = [{ z, x, y, type: "heatmap", colorscale: "Viridis", zmin: map.low, zmax: map.high, colorbar: { thickness: 10, outlinewidth: 0, tickfont: { size: 10 } },
      hovertemplate: `%{z:.3f} at %{x:.2f}, %{y:.2f}<extra></extra>` }];
    if (visited) traces.push({ x: visited.action, y: visited.state, mode: "markers", marker: { size: 4, color: "#ffffff", line: { color: "#000000", width: 0.6 } }, hoverinfo: "skip" });
    Plotly.react(place, traces, layout({ height: 290, title: { text: title, font: { size: 13 }, x: 0.02 }, margin: { l: 46, r: 4, t: 32, b: 42 },
      xaxis: { title: { text: across, standoff: 6 }, zeroline: false, showgrid: false, range: [0, 1] },
      yaxis: { title: { text: down || "state s", standoff: 4 }, zeroline: false, showgrid: false, autorange: down ? "reversed" : true } }), OPTIONS);
    place.setAttribute("aria-label", title);
  }

  function about() {
    const node = section("about", "How it was made");
    const list = make("dl", {});
    for (const [name, value] of Object.entries(view.about || {}))
      list.append(make("dt", {}, name), make("dd", {}, name === "command" ? make("code", {}, value) : value));
    node.append(list);
  }

  document.getElementById("title").textContent = view.title;
  document.getElementById("settings").textContent = view.settings;
  claims(); curves(); table(); spread(); maps(); about();
  redraw();
  document.documentElement.dataset.ready = "yes";
})();

// How figures look: the colours of the page, which follow light and dark, and axes whose labels have room.
const DARK = window.matchMedia("(prefers-color-scheme: dark)"), PRINT = window.matchMedia("print");
const OPTIONS = { displayModeBar: false, responsive: true };
const HEIGHT = 330, MARGIN = { l: 56, r: 62, t: 36, b: 48 };
const LABEL_ROWS = 28;  // pixels between two labels of two lines

// A colour of the style sheet as it is now.
function colour(name) {
  const probe = make("span", { style: `color: var(--${name})` });
  main.append(probe);
  const value = getComputedStyle(probe).color;
  probe.remove();
  return value;
}

let colours = null;

function themed() {
  if (!colours) {
    colours = { ink: colour("ink"), soft: colour("soft"), grid: colour("grid"), paper: colour("paper"), zero: colour("zero") };
    colours.dark = Number(colours.ink.match(/\d+/)[0]) > 128;
  }
  return colours;
}

function repaint() {
  colours = null;
  redraw();
  repaints.forEach((draw) => draw());
}

// In the dark curves are lighter, and black ones have the ink of the page.
const lineColour = (strategy, theme) => (strategy.colour === "#000000" ? theme.ink : theme.dark ? lighter(strategy.colour) : strategy.colour);
const lighter = (hex) => "#" + [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16))
  .map((part) => Math.round(part + 0.2 * (255 - part)).toString(16).padStart(2, "0")).join("");
const levelColour = (level, theme) => (level.key === "myopic" ? theme.ink : theme.soft);
const levelDash = (level) => (level.key === "myopic" ? "dot" : "dashdot");

function layout(theme, more) {
  return Object.assign({
    font: { family: "system-ui, -apple-system, Segoe UI, Roboto, sans-serif", size: 12, color: theme.ink },
    margin: MARGIN, height: HEIGHT, hovermode: "closest", showlegend: false,
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    hoverlabel: { bgcolor: theme.paper, bordercolor: theme.soft, font: { color: theme.ink, size: 12 } },
  }, more);
}

const heading = (text, size) => ({ text, font: { size: size || 14 }, x: 0.02, xanchor: "left" });

// An axis of costs: its ticks are checkpoints, or round numbers between the first and the last, as many as have room.
function costAxis(theme, place, values) {
  const all = [...new Set(values)].filter((value) => value > 0).sort((a, b) => a - b);
  const low = Math.log10(all[0]), high = Math.log10(all[all.length - 1]), pad = Math.max(0.04 * (high - low), 0.02);
  const width = Math.max(place.clientWidth - MARGIN.l - MARGIN.r, 100), across = high - low + 2 * pad;
  const fitting = (ticks) => {
    let end = -Infinity;
    return ticks.filter((tick) => {
      const at = (Math.log10(tick) - low + pad) / across * width, half = 4 * cost(tick).length + 3;
      return at - half >= end && (end = at + half, true);
    });
  };
  const rounds = (firsts) => {
    const powers = Array.from({ length: Math.floor(high) - Math.floor(low) + 1 }, (_, i) => 10 ** (Math.floor(low) + i));
    return powers.flatMap((power) => firsts.map((first) => first * power)).filter((tick) => tick >= all[0] && tick <= all[all.length - 1]);
  };
  const sets = state.axis === "samples" ? [all] : [[1, 2, 5], [1, 3], [1]].map(rounds).concat([all]);
  const shown = fitting(sets.find((ticks) => ticks.length >= 2 && fitting(ticks).length === ticks.length) || all);
  return { title: { text: view.axes[state.axis], standoff: 8 }, type: "log", range: [low - pad, high + pad], gridcolor: theme.grid,
    zeroline: false, tickvals: shown, ticktext: shown.map(cost), tickangle: 0 };
}

// An axis of gaps from 0 (or the lowest band) to the highest, so that a line at 0 is not lost in the frame.
function gapAxis(theme, values) {
  const top = Math.max(...values, 1e-9), bottom = Math.min(0, ...values);
  return { title: { text: view.measures[state.measure], standoff: 6 }, range: [bottom - 0.03 * (top - bottom), top + 0.04 * (top - bottom)],
    gridcolor: theme.grid, zerolinecolor: theme.zero };
}

// Policies without data are lines across the panel; their labels stand beside it, where no curve is, and apart.
function levelMarks(levels, axis, theme) {
  const inside = HEIGHT - MARGIN.t - MARGIN.b, [low, high] = axis.range;
  const marks = levels.map((level) => ({ level, gap: level.gaps[state.measure] }))
    .map((mark) => ({ ...mark, at: (mark.gap - low) / (high - low) * inside })).sort((a, b) => a.at - b.at);
  marks.forEach((mark, i) => { mark.to = Math.max(mark.at, LABEL_ROWS / 2, i ? marks[i - 1].to + LABEL_ROWS : 0); });
  for (let i = marks.length - 1, most = inside - LABEL_ROWS / 2; i >= 0; most = marks[i].to - LABEL_ROWS, i--)
    marks[i].to = Math.min(marks[i].to, most);
  return {
    shapes: marks.map(({ level, gap }) => ({ type: "line", xref: "paper", x0: 0, x1: 1, y0: gap, y1: gap,
      line: { color: levelColour(level, theme), width: 1.3, dash: levelDash(level) } })),
    annotations: marks.map(({ level, gap, at, to }) => ({ xref: "paper", x: 1, xanchor: "left", xshift: 4, y: gap, yanchor: "middle",
      yshift: to - at, showarrow: false, align: "left", text: `${level.key}<br>${digits(gap)}`, font: { size: 11, color: levelColour(level, theme) } })),
  };
}

// The columns of the faithful construction, chapter by chapter: entries on the edges of their cells; ids with the window
// that sweeps over them; all ids taken apart, sequence × token; values. Ghosts are the ids of all cubes.

const SHIFTS = 1, SPREAD = 2, OUTPUT = 4;

function ghostsAt(number) {  // the ids of all cubes after a layer
  const ids = about.ghosts.start.slice();
  for (const [at, who, to] of about.ghosts.moves) {
    if (at > number) break;
    who.forEach((k, i) => { ids[k] = to[i]; });
  }
  return ids;
}

const contextStage = () => about.stages.find((stage) => stage.name === "context");
const windowAt = (number) => {  // which ids a layer of the context stage selects
  const stage = contextStage();
  return stage && number >= stage.first && number < stage.first + stage.depth ? about.windows[number - stage.first] : null;
};
const lastSweep = () => {  // the last layer that shifts selectively
  const stage = contextStage(), open = about.windows.findIndex((w) => w && w[1] === null);
  return stage.first + (open < 0 ? stage.depth : open) - 1;
};

function drawColumns(at, here) {
  const frame = seen.frames[at], chapter = frame.chapter;
  if (chapter === SPREAD && about.ghosts && about.windows.length) return drawPlane(at);
  const before = seen.frames[Math.max(0, at - 1)], picture = $("picture"), WIDTH = widthOf(picture);
  const entries = frame.stage === "input" || frame.stage === "quantise" || frame.stage === "guard";
  const lanes = [];
  for (let j = 0; j < about.n; j++) for (let i = 0; i < (entries ? about.d : 1); i++) lanes.push([j, i]);
  const tall = Math.max(30, Math.min(120, 400 / lanes.length)), middle = (row) => row * tall + 8 + tall / 2;
  const place = (f, j, i) => entries ? f.state[j][i] : f.ids[j];
  const ghosts = !entries && about.ghosts && chapter === SHIFTS ? ghostsAt(layer) : null;
  let ends, scale;
  if (entries) {
    const edges = about.edges.flat(), all = seen.frames.filter((f) => f.chapter === 0).flatMap((f) => f.state.flat());
    ends = [Math.min(...edges, ...all), Math.max(...edges, ...all)];
    scale = (v) => LEFT + (v - ends[0]) / (ends[1] - ends[0]) * (WIDTH - LEFT - RIGHT);
  } else {
    const all = seen.frames.filter((f) => f.layer && (chapter === SHIFTS ? f.chapter < SPREAD : true)).flatMap((f) => f.ids.map(symlog));
    if (ghosts) all.push(symlog(ghostsAt(lastSweep()).reduce((a, b) => Math.max(a, b), 0)));
    ends = [Math.min(0, ...all), Math.max(1, ...all)];
    scale = (v) => LEFT + (symlog(v) - ends[0]) / (ends[1] - ends[0]) * (WIDTH - LEFT - RIGHT);
  }
  const key = `${entries} ${ends} ${WIDTH}`, foot = lanes.length * tall + 16;
  if (picture.dataset.key !== key) {  // axes, lanes and dots once; later frames only move the dots
    ground(picture, key, WIDTH, foot + 44);
    const floor = picture.querySelector("#ground");
    for (const [row, [j, i]] of lanes.entries()) {
      const y = middle(row), reach = tall * .3;
      if (entries) about.edges[i].forEach((e) => draw(floor, "path", { class: "edge", d: `M${scale(e)},${y - reach}V${y + reach}` }));
      draw(floor, "path", { class: "lane", d: `M${LEFT},${y}H${WIDTH - RIGHT}` });
      draw(floor, "text", { x: LEFT - 14, y: y + 4, "text-anchor": "end" }, entries ? tokenName(j, i) : `token ${j}`);
    }
    ticks(ends, entries).forEach(([v, label]) => draw(floor, "text", { x: scale(v), y: foot + 10, "text-anchor": "middle" }, label));
    draw(floor, "text", { x: (LEFT + WIDTH - RIGHT) / 2, y: foot + 32, "text-anchor": "middle" },
      entries ? "entry, with the edges of the cells" : "id uᵀz in steps of the grid, log(1 + id)");
    for (const [j, i] of lanes) dot(picture, j, entries && frame.stage !== "guard" ? [i, scale, ends, WIDTH] : null);
  }
  const marks = picture.querySelector("#marks");
  marks.replaceChildren();
  if (ghosts) for (let j = 0; j < about.n; j++) {
    const y = middle(j), one = new Set(ghosts.filter((_, k) => k % about.n === j));
    draw(marks, "path", { class: `ghosts hue${j % 6}`, d: [...one].map((v) => `M${scale(v).toFixed(1)},${y - 9}v18`).join("") });
  }
  const open = entries ? null : windowAt(layer);
  if (open && chapter === SHIFTS) {
    const from = scale(open[0]), to = open[1] === null ? WIDTH - RIGHT : scale(open[1]), wide = Math.max(3, to - from);
    draw(marks, "rect", { class: "window", x: from, y: 6, width: wide, height: foot - 14 });
    const label = `window ${show(open[0])} < id < ${show(open[1])}`, room = from + wide + 7 * label.length < WIDTH;
    draw(marks, "text", { class: "window-name", x: room ? from + wide + 4 : from - 4, y: foot - 4, "text-anchor": room ? "start" : "end" }, label);
  }
  if (here && frame.cells && entries) frame.cells.forEach((cell) => {
    const y = middle(cell.token * about.d + cell.feature), [low, high] = cell.ends.map(scale);
    draw(marks, "rect", { class: "window", x: low, y: y - tall * .3, width: high - low, height: tall * .6 });
  });
  [...picture.querySelectorAll(".token")].forEach((token, row) => {
    const [j, i] = lanes[row], y = middle(row), x = scale(place(frame, j, i));
    const moved = here && frame.moved.includes(j) && place(before, j, i) !== place(frame, j, i);
    if (moved) {
      const from = scale(place(before, j, i));
      draw(marks, "path", { class: `trail hue${j % 6}`, d: `M${from},${y}H${x}` });
      draw(marks, "circle", { class: `ghost hue${j % 6}`, cx: from, cy: y, r: 6 });
    }
    const valued = seen.frames.slice(0, at + 1).some((f) => f.stage === "value" && f.moved.includes(j));
    settle(token, x, y, entries ? show(frame.state[j][i]) : valued ? frame.state[j].map(show).join(" ") : show(frame.ids[j]), moved, WIDTH);
  });
  if (here && frame.links && chapter === SHIFTS) frame.links.forEach((link) => {  // what the heads bring, from which token to which
    const a = [scale(before.ids[link.from]), middle(link.from)], b = [scale(before.ids[link.to]), middle(link.to)];
    const word = `head ${link.head}: ${link.sign > 0 ? "max" : "min"} ${show(before.ids[link.from])}`;
    if (link.from === link.to) draw(marks, "text", { class: "link-name", x: a[0], y: a[1] - 14, dx: -10, "text-anchor": "end" }, `${word}, itself`);
    else {
      const side = Math.max(a[0], b[0]) + 160 < WIDTH ? 1 : -1, bend = [(a[0] + b[0]) / 2 + side * 46, (a[1] + b[1]) / 2];
      draw(marks, "path", { class: `link hue${link.from % 6}`, d: `M${a}Q${bend} ${b}` });
      draw(marks, "text", { class: "link-name", x: bend[0], y: bend[1] + 4, "text-anchor": side > 0 ? "start" : "end" }, word);
    }
  });
  picture.setAttribute("aria-label", lanes.map(([j, i]) => `token ${j} at ${show(place(frame, j, i))}`).join(", "));
  $("note").textContent = entries ? "Each token in the range of its position; drag it. The quantiser takes it to the lower edge of its cell, shaded."
    : ghosts ? `Ticks behind a dot: where this token is in ${cubes()}. Only ids in the window move; curves show what the heads bring.`
      : "The id of each column; a dashed trail shows what this layer moved. Once its value is mapped, a token shows the value.";
}

const cubes = () => about.ghosts.cubes === about.ghosts.of ? `all ${count(about.ghosts.of)} cubes`
  : `${count(about.ghosts.cubes)} of ${count(about.ghosts.of)} cubes`;

// All ids at once, each taken apart: which sequence (its largest id before the global shift) × which token (its own).
function drawPlane(at) {
  const frame = seen.frames[at], picture = $("picture"), WIDTH = widthOf(picture), HEIGHT = 430, left = 64, base = HEIGHT - 40;
  const sweep = lastSweep(), own = seen.frames[frameAt(sweep)].ids, n = about.n, ids = ghostsAt(sweep);
  const largest = ids.map((_, k) => Math.max(...ids.slice(k - k % n, k - k % n + n)));
  const order = [...new Set([...largest, Math.max(...own)])].sort((a, b) => a - b), rank = new Map(order.map((v, k) => [v, k]));
  const logs = [...ids, ...own].map(symlog), [y0, y1] = [Math.min(...logs) - .03, Math.max(...logs) + .03];
  const x = (v) => left + 8 + rank.get(v) / Math.max(1, order.length - 1) * (WIDTH - left - RIGHT - 8), y = (v) => base - (symlog(v) - y0) / (y1 - y0) * (base - 14);
  ground(picture, `plane ${WIDTH} ${y0}`, WIDTH, HEIGHT);
  const floor = picture.querySelector("#ground"), marks = picture.querySelector("#marks"), here = x(Math.max(...own));
  draw(floor, "path", { class: "lane", d: `M${left},8V${base}H${WIDTH - RIGHT}` });
  for (let j = 0; j < n; j++) {
    const d = ids.map((v, k) => k % n === j ? `M${x(largest[k]).toFixed(1)},${y(v).toFixed(1)}h0` : "").join("");
    draw(marks, "path", { class: `points${about.ghosts.cubes > 100 ? "" : " few"} hue${j % 6}`, d });
  }
  draw(marks, "path", { class: "cross", d: `M${here},20V${base}` });
  ticks([y0, y1], false).forEach(([v, label]) => draw(floor, "text", { x: left - 8, y: y(v) + 4, "text-anchor": "end" }, label));
  draw(floor, "text", { x: WIDTH - RIGHT, y: base + 30, "text-anchor": "end" }, "which sequence, in the order of its largest id");
  draw(floor, "text", { x: left + 6, y: 14 }, WIDTH < 420 ? "its own id before the shift" : "which token: its own id before the global shift");
  draw(marks, "text", { x: here, y: base + 15, "text-anchor": "middle", class: "link-name" }, "this sequence");
  for (let j = 0; j < n; j++) settle(dot(picture, j, null), here, y(own[j]), `id ${show(frame.ids[j])}`, true, WIDTH);
  picture.setAttribute("aria-label", `${about.ghosts.says} ` + own.map((_, j) => `token ${j} has the id ${show(frame.ids[j])}`).join(", "));
  $("note").textContent = `One point for each token of ${cubes()}; its id is C · (the largest of its sequence) + its own, so two equal ids would be one point. ` +
    `Measured: ${about.ghosts.says}`;
}

function ground(picture, key, width, height) {
  picture.dataset.key = key;
  picture.replaceChildren();
  picture.setAttribute("viewBox", `0 0 ${width} ${height}`);
  draw(picture, "g", { id: "ground" });
  draw(picture, "g", { id: "marks" });
}

function dot(picture, j, dragged) {
  const token = draw(picture, "g", { class: `token hue${j % 6}` });
  draw(token, "circle", { r: 7 });
  draw(token, "text", { class: "value", y: 4 });
  if (dragged) {  // along its lane, inside the range of its position
    const [i, scale, ends, width] = dragged, offset = about.offset ? about.offset[j][i] : 0;
    token.classList.add("draggable");
    drag(token, picture, (x) => put(j, i, ends[0] + (x - LEFT) / (width - LEFT - RIGHT) * (ends[1] - ends[0]) - offset),
      () => { stop(); go(0); });
  }
  return token;
}

function settle(token, x, y, words, moved, width) {
  token.style.transform = `translate(${x}px, ${y}px)`;
  const text = token.querySelector("text"), left = x > width - RIGHT - 8 * words.length - 12;  // no room at the right
  text.textContent = words;
  text.setAttribute("class", moved ? "value moved" : "value");
  text.setAttribute("x", left ? -12 : 12);
  text.setAttribute("text-anchor", left ? "end" : "start");
}

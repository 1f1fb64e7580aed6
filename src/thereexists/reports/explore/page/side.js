// Beside the layers: target and output, the map over two inputs, attention, and the list of all changes.

function drawCompare() {
  if (!about.low) {  // words
    const said = (words) => words === null ? "nothing is stored for this input" : words.join(" ");
    $("compare-table").replaceChildren(table(["", "tokens"], [[about.compared || "stored", said(seen.stored)], ["network", said(seen.answer)]], "said"));
    return;
  }
  $("compare-table").replaceChildren(table(["output", "target ○", "network ●", "off by"], outputs().map(([j, i, v, f]) => [
    outputName(j, i), f === null ? "–" : four(f), v === null ? show(v) : four(v), f === null || v === null ? "–" : show(Number(Math.abs(v - f).toPrecision(3)))])));
}

const four = (v) => show(Number(v.toPrecision(4)));
const outputs = () => seen.output.flatMap((token, j) => token.map((v, i) => [j, i, v, seen.target ? seen.target[j][i] : null]));
const outputName = (j, i) => seen.output[0].length > 1 ? `token ${j}, ${i}` : `token ${j}`;

function drawOutput() {  // the last chapter: rings are the function, dots the network
  const picture = $("picture"), cells = outputs(), WIDTH = widthOf(picture), tall = Math.max(30, Math.min(120, 400 / cells.length));
  const numbers = cells.flatMap(([, , v, f]) => [v, f]).filter((v) => v !== null);
  const ends = [Math.min(...numbers, ...about.low), Math.max(...numbers, ...about.high)];
  const scale = (v) => LEFT + (v - ends[0]) / (ends[1] - ends[0] || 1) * (WIDTH - LEFT - RIGHT), foot = cells.length * tall + 16;
  ground(picture, "output", WIDTH, foot + 20);
  const floor = picture.querySelector("#ground");
  cells.forEach(([j, i, v, f], row) => {
    const y = row * tall + 8 + tall / 2;
    draw(floor, "text", { x: LEFT - 14, y: y + 4, "text-anchor": "end" }, outputName(j, i));
    draw(floor, "path", { class: "lane", d: `M${LEFT},${y}H${WIDTH - RIGHT}` });
    if (f !== null && v !== null) draw(floor, "path", { class: "gap", d: `M${scale(f)},${y}H${scale(v)}` });
    if (f !== null) draw(floor, "circle", { class: "ring", cx: scale(f), cy: y, r: 8 });
    if (v !== null) draw(floor, "circle", { class: "f1", cx: scale(v), cy: y, r: 5 });
  });
  ticks(ends, true).forEach(([v, label]) => draw(floor, "text", { x: scale(v), y: foot + 10, "text-anchor": "middle" }, label));
  picture.setAttribute("aria-label", cells.map(([j, i, v, f]) => `${outputName(j, i)}: target ${show(f)}, network ${show(v)}`).join("; "));
  $("note").textContent = "Rings: the function. Dots: the network. The line between them is the error.";
}

// --- the map ---------------------------------------------------------------------------------------------------------

let mapped = null;     // the places and outputs that are drawn
let mapKey = "";       // of the inputs that are held, and the axes: the map is asked for again when this changes
const axis = { across: 0, up: 1, out: 0 };  // entries and output, counted through

const entryOf = (k) => [Math.floor(k / about.d), k % about.d];

function mapAxes() {
  const names = [];
  for (let j = 0; j < about.n; j++) for (let i = 0; i < about.d; i++) names.push(tokenName(j, i));
  const choice = (id, label, options, part) => {
    const box = make("label", {}, label), list = make("select", { id });
    options.forEach((name, k) => list.append(make("option", { value: k }, name)));
    list.value = axis[part];
    list.addEventListener("change", () => {
      const old = axis[part], other = part === "across" ? "up" : "across";
      axis[part] = Number(list.value);
      if (part !== "out" && axis.across === axis.up) { axis[other] = old; $("map-" + other).value = old; }
      drawMap();
      remember();
    });
    box.append(list);
    return box;
  };
  const out = seen.output.flatMap((token, j) => token.map((_, i) => outputName(j, i)));
  $("map-axes").replaceChildren(choice("map-across", "across", names, "across"), choice("map-up", "up", names, "up"),
    choice("map-out", "shows output", out, "out"));
}

async function drawMap() {
  if (!about.map) return;
  if ($("map-card").hidden) { $("map-card").hidden = false; mapAxes(); crosshair(); }
  const free = [entryOf(axis.across), entryOf(axis.up)];
  const held = input.x.map((token, j) => token.map((v, i) => free.some(([a, b]) => a === j && b === i) ? null : v));
  const key = JSON.stringify([held, free]);
  if (key !== mapKey) {
    mapKey = key;
    try { mapped = await ask("map", { x: input.x, free }); } catch (error) { return complain(error); }
    if (mapKey !== key) return;  // the reader went on meanwhile
  }
  if (mapped) paintMap(free);
}

function paintMap(free) {
  const picture = $("map"), SIDE = 200, left = 34, key = JSON.stringify([mapKey, axis.out]);
  const [low, high] = [0, 1].map((end) => free.map(([, i]) => (end ? about.high : about.low)[i]));
  const x = (v) => left + (v - low[0]) / (high[0] - low[0]) * SIDE, y = (v) => 4 + SIDE - (v - low[1]) / (high[1] - low[1]) * SIDE;
  if (picture.dataset.key !== key) {
    picture.dataset.key = key;
    picture.replaceChildren();
    picture.setAttribute("viewBox", `0 0 ${left + SIDE + 78} ${SIDE + 24}`);
    const d = mapped.outputs[0][0][0].length, [j, i] = [Math.floor(axis.out / d), axis.out % d];
    const values = mapped.outputs.map((row) => row.map((out) => out[j][i])), flat = values.flat().filter((v) => v !== null);
    const least = Math.min(...flat), most = Math.max(...flat), level = (v) => Math.min(9, Math.floor(10 * (v - least) / (most - least || 1)));
    const wide = SIDE / mapped.across.length, tall = SIDE / mapped.up.length;
    values.forEach((row, k) => row.forEach((v, l) => v !== null && draw(picture, "rect", { class: `r${level(v)}`,
      x: left + l * wide, y: 4 + SIDE - (k + 1) * tall, width: wide + .3, height: tall + .3 })));
    [[low[0], left, "start"], [high[0], left + SIDE, "end"]].forEach(([v, at, anchor]) =>
      draw(picture, "text", { x: at, y: SIDE + 18, "text-anchor": anchor }, show(v)));
    [[low[1], SIDE + 4], [high[1], 14]].forEach(([v, at]) => draw(picture, "text", { x: left - 6, y: at, "text-anchor": "end" }, show(v)));
    for (let k = 0; k < 10; k++) draw(picture, "rect", { class: `r${k}`, x: left + SIDE + 8, y: SIDE - 16 - k * 16, width: 9, height: 16.3 });
    [[least, SIDE], [most, SIDE - 146]].forEach(([v, at]) => draw(picture, "text", { x: left + SIDE + 20, y: at }, show(Number(v.toPrecision(3)))));
    draw(picture, "path", { id: "hair" });
    draw(picture, "circle", { id: "hair-dot", r: 5 });
  }
  const at = [x(input.x[free[0][0]][free[0][1]]), y(input.x[free[1][0]][free[1][1]])];
  $("hair").setAttribute("d", `M${at[0]},4V${4 + SIDE}M${left},${at[1]}H${left + SIDE}`);
  $("hair-dot").setAttribute("cx", at[0]);
  $("hair-dot").setAttribute("cy", at[1]);
}

function crosshair() {  // by pointer, and by the arrow keys
  const set = (k, v) => { const [j, i] = entryOf(k); put(j, i, v); };
  const range = (k) => { const [, i] = entryOf(k); return [about.low[i], about.high[i]]; };
  drag($("map"), $("map"), (px, py) => {
    [[axis.across, (px - 34) / 200], [axis.up, 1 - (py - 4) / 200]].forEach(([k, share]) => {
      const [low, high] = range(k);
      set(k, low + Math.min(1, Math.max(0, share)) * (high - low));
    });
  });
  $("map").addEventListener("keydown", (event) => {
    const move = { ArrowLeft: ["across", -1], ArrowRight: ["across", 1], ArrowUp: ["up", 1], ArrowDown: ["up", -1] }[event.key];
    if (!move) return;
    const [part, sign] = move, [j, i] = entryOf(axis[part]), [low, high] = range(axis[part]);
    const places = part === "across" ? mapped.across.length : mapped.up.length;
    put(j, i, input.x[j][i] + sign * (high - low) / (about.positions || places));
    event.preventDefault();
    event.stopPropagation();
  });
}

// --- attention of any layer, and the list ----------------------------------------------------------------------------

let asked = "";

async function drawAttention(frame, here, stage) {
  const question = JSON.stringify([input, layer]);
  asked = question;
  if (!stage || !stage.halves.includes("attention")) {
    const other = about.stages.find((s) => s.halves.includes("attention"));
    $("attention-note").textContent = stage ? "This layer has no attention." : "There is no attention here: choose a layer.";
    const button = make("button", {}, other ? `Go to the first change of ${inWords(other.name)}` : "");
    button.addEventListener("click", () => { stop(); go((seen.frames.find((f) => f.stage === other.name) || { layer: other.first }).layer); });
    $("heads").replaceChildren(...(other ? [button] : []));
    return follow();
  }
  let heads = here ? frame.attention : null;
  if (!heads && stored) { $("attention-note").textContent = "This layer changes nothing; its attention is not stored."; $("heads").replaceChildren(); return; }
  try {
    if (!heads) heads = (await ask("attention", { ...input, layer })).heads;
  } catch (error) { return complain(error); }
  if (asked !== question || !heads) return;  // the reader went on meanwhile
  $("attention-note").textContent = `Layer ${count(layer)}: rows are the tokens that attend, columns the tokens they attend to.`;
  $("heads").replaceChildren(...heads.slice(0, 12).map((weights, h) => heat(weights, h, here ? frame : {})));
  follow();
}

function heat(weights, h, { links, moved }) {
  const numbers = weights.length <= 8, out = make("table", { class: numbers ? `heat numbers${weights.length > 6 ? " many" : ""}` : "heat" });
  const brings = (links || []).find((link) => link.head === h);
  out.append(make("caption", {}, `head ${h}` + (brings ? `: ${brings.sign > 0 ? "max" : "min"}, from token ${brings.from}` : "")));
  const head = make("tr");
  head.append(make("td"), ...weights.map((_, k) => make("th", { scope: "col" }, numbers || k % 8 === 0 ? k : "")));
  out.append(head);
  weights.forEach((row, j) => {
    const line = make("tr", brings && moved.includes(j) ? { class: "moves" } : {});
    line.append(make("th", { scope: "row" }, j));
    row.forEach((w, k) => {
      const cell = make("td", { title: `token ${j} to token ${k}: ${show(w)}` }, numbers ? (w === null ? "?" : String(Number(w.toFixed(2)))) : "");
      cell.style.setProperty("--w", w || 0);
      if (w > .55) cell.className = "strong";
      line.append(cell);
    });
    out.append(line);
  });
  return out;
}

function drawLog() {
  $("log").replaceChildren(...seen.frames.map((frame) => {
    const item = make("li"), button = make("button", { "data-layer": frame.layer }, frame.says);
    const where = !frame.layer ? "input" : frame.layer > about.depth ? "output" : `layer ${count(frame.layer)}, ${inWords(frame.stage)}`;
    button.prepend(make("small", {}, where));
    button.addEventListener("click", () => { stop(); go(frame.layer); });
    item.append(button);
    return item;
  }));
}

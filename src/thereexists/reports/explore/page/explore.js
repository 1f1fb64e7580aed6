// The main path: ask for an input's frames, show one of them, go to another; chapters, playing, keys, the address.

let timer = null;     // while playing
let busy = false, waiting = false;

async function changed() {  // one question at a time; while it runs, only the newest input waits
  if (busy) { waiting = true; return; }
  busy = true;
  const at = seen ? frameAt(layer) : 0, exact = seen && seen.frames[at].layer === layer;
  try {
    const answer = await ask("run", input);
    complain(null);
    seen = answer;
    if (stored && answer.input.x && !waiting) snap(answer.input.x);
    $("frame").max = seen.frames.length - 1;
    if (exact) layer = seen.frames[Math.min(at, seen.frames.length - 1)].layer;
    [...$("chapters").children].forEach((item, k) => {  // as wide as the chapter has changes: the slider below counts those
      const frames = seen.frames.filter((frame) => frame.chapter === k).length;
      item.style.flexGrow = 1 + frames;
      item.firstChild.disabled = !frames;
    });
    drawLog();
    drawCompare();
    drawFrame();
    drawMap();
    const changes = seen.frames.length - 2;
    $("timing").textContent = `${count(about.depth)} layer${about.depth === 1 ? "" : "s"}, of which ${changes} change${changes === 1 ? "s" : ""} ` +
      (stored ? "this input; stored in this page. " : `this input; computed in ${seen.milliseconds} ms. `) +
      (seen.complete ? (seen.same ? "The last frame is the network's own output, bit for bit." : "") :
        "There are more changes than the page shows; target and output are those of the whole network.");
  } catch (error) {
    complain(error);
  }
  busy = false;
  if (waiting) { waiting = false; changed(); }
}

// --- one frame -------------------------------------------------------------------------------------------------------

function drawFrame() {
  if (!seen) return;
  remember();
  const at = frameAt(layer), frame = seen.frames[at], here = frame.layer === layer, stage = stageOf(layer);
  const chapter = about.chapters[frame.chapter], last = seen.frames.length - 2;
  $("frame").value = at;
  $("frame").setAttribute("aria-valuetext", `${at} of ${last + 1}: ${frame.says}`);
  $("layer").value = Math.min(layer, about.depth);
  $("where").textContent = layer > about.depth ? "The output, after the last layer" : `Change ${at} of ${last}` +
    (stage ? `; ${inWords(stage.name)}` + (stage.depth > 1 ? `, layer ${count(layer - stage.first + 1)} of ${count(stage.depth)}` : "") : "; before the first layer");
  $("chapter-says").textContent = chapter.says;
  $("says").textContent = here ? frame.says : "This layer changes nothing.";
  $("formula").replaceChildren(...(here && frame.formula || []).map(([text, token]) =>
    make("span", token === null ? {} : { class: `number hue${token % 6}` }, text)));
  [...$("chapters").children].forEach((item, k) => {
    if (k === frame.chapter) item.firstChild.setAttribute("aria-current", "step"); else item.firstChild.removeAttribute("aria-current");
    if (k === frame.chapter) $("chapters").scrollLeft = item.offsetLeft - 40;
  });
  for (const button of $("log").querySelectorAll("button")) {
    const current = here && Number(button.dataset.layer) === layer;
    if (current) button.setAttribute("aria-current", "step"); else button.removeAttribute("aria-current");
  }
  drawPicture(at, here);
  follow();
  drawAttention(frame, here, stage);
}

function follow() {  // once everything has its height: the list is as tall as the rest leaves it
  const current = $("log").querySelector("[aria-current]");
  if (current) $("log").scrollTop = current.offsetTop - 60;
}

function drawPicture(at, here) {
  const pictures = { columns: drawColumns, doubling: drawDoubling, counting: drawCounting };
  if (seen.frames[at].stage === "output" && about.low) drawOutput();
  else (pictures[about.kind] || drawStream)(at, here);
}

// --- where we are ----------------------------------------------------------------------------------------------------

function go(number) {
  layer = Math.max(0, Math.min(about.depth + 1, Math.round(number) || 0));
  drawFrame();
}

function nextChange() {
  const next = seen.frames.find((frame) => frame.layer > layer);
  if (next) go(next.layer); else stop();
}

const previousChange = () => go(seen.frames[Math.max(0, frameAt(layer) - (seen.frames[frameAt(layer)].layer === layer))].layer);
const lastLayer = () => seen.frames[seen.frames.length - 1].layer;

function play() {  // to the end of the chapter; from there, through the next one
  if (timer) return stop();
  if (layer >= lastLayer()) go(0);
  let begun = false;
  timer = setInterval(() => {
    const next = seen.frames.find((frame) => frame.layer > layer);
    if (!next || (begun && next.chapter !== seen.frames[frameAt(layer)].chapter)) return stop();
    begun = true;
    go(next.layer);
  }, 1000);
  $("play").textContent = "Pause";
  $("play").setAttribute("aria-pressed", "true");
}

function stop() {
  clearInterval(timer);
  timer = null;
  $("play").textContent = "Play";
  $("play").setAttribute("aria-pressed", "false");
}

// The state is in the address, #x=0.7;0.1&layer=30, so that a link shows what its sender saw.
function remember() {
  const state = new URLSearchParams();
  if (input.x) state.set("x", input.x.map((token) => token.map((v) => Number(v.toPrecision(6))).join(",")).join(";"));
  else state.set("words", input.words.join(" "));
  state.set("layer", layer);
  if (about.map) state.set("map", [axis.across, axis.up, axis.out].join(","));
  history.replaceState(null, "", "#" + state);
}

function recollect() {
  const state = new URLSearchParams(location.hash.slice(1));
  const x = (state.get("x") || "").split(";").map((token) => token.split(",").map(Number));
  const right = x.length === about.n && x.every((token) => token.length === about.d && token.every(Number.isFinite));
  if (about.low && right) snap(x);
  if (!about.low && state.get("words")) snap(state.get("words").split(" "));
  const axes = (state.get("map") || "").split(",").map(Number), entries = about.n * about.d;
  if (axes.length === 3 && axes.every((k) => Number.isInteger(k) && k >= 0 && k < entries) && axes[0] !== axes[1]) {
    [axis.across, axis.up, axis.out] = axes;
  }
  return Number(state.get("layer")) || 0;
}

// --- beginning -------------------------------------------------------------------------------------------------------

function head() {
  document.title = `${about.title}: thereexists explore`;
  $("title").textContent = about.title;
  $("about").textContent = about.about;
  $("facts").replaceChildren(...Object.entries(about.facts).map(([name, value]) => {
    const item = make("li");
    item.append(make("b", {}, name), String(value));
    return item;
  }));
  if (about.certified) {
    $("certified").hidden = false;
    $("certified").firstChild.textContent = "certified " + asInAPaper(about.certified.split(";")[0]);
    $("certified").lastChild.textContent = asInAPaper(about.certified);
  }
  $("layer").max = about.depth;
  $("depth").textContent = `of ${count(about.depth)}`;
  $("chapters").replaceChildren(...about.chapters.map((chapter, k) => {
    const item = make("li"), button = make("button", { title: chapter.says }, chapter.name);
    button.addEventListener("click", () => { stop(); const first = seen && seen.frames.find((f) => f.chapter === k); if (first) go(first.layer); });
    item.append(button);
    return item;
  }));
}

function listen() {
  const on = (id, what) => $(id).addEventListener("click", () => { if (seen) { stop(); what(); } });
  on("first", () => go(0));
  on("previous", previousChange);
  on("next", nextChange);
  on("last", () => go(lastLayer()));
  on("back", () => go(layer - 1));
  on("step", () => go(Math.min(layer + 1, about.depth)));
  $("play").addEventListener("click", () => { if (seen) play(); });
  $("frame").addEventListener("input", () => { stop(); go(seen.frames[$("frame").value].layer); });
  $("layer").addEventListener("change", () => { stop(); go(Math.min(about.depth, Number($("layer").value))); });
  document.addEventListener("keydown", (event) => {
    if (!seen || event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select, button, a, summary, #map")) return;
    const keys = { " ": play, ArrowRight: event.shiftKey ? () => go(layer + 1) : nextChange,
      ArrowLeft: event.shiftKey ? () => go(layer - 1) : previousChange, Home: () => go(0), End: () => go(lastLayer()) };
    if (!keys[event.key]) return;
    if (event.key !== " ") stop();
    keys[event.key]();
    event.preventDefault();
  });
  let wide = 0;
  new ResizeObserver(() => {
    const now = $("picture").parentNode.clientWidth;
    if (seen && now !== wide) { wide = now; drawFrame(); }
  }).observe($("picture").parentNode);
}

async function begin() {
  try {
    about = await ask("witness");
  } catch (error) { return complain(error); }
  head();
  LEFT = about.kind === "blocks" ? 110 : about.d > 1 ? 88 : 70;
  if (about.low) sliders(); else words();
  listen();
  const from = recollect();
  await changed();
  if (seen && from) go(from);
}

begin();

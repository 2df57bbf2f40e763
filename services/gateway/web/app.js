// The page: asks, shows each step as it happens, and then exactly one outcome.
// Everything that comes from the server becomes text nodes, never markup.

const byId = (id) => document.getElementById(id);
const form = byId("ask");
const box = byId("question");
const send = byId("send");
const stop = byId("stop");
const steps = byId("steps");
const result = byId("result");
const live = byId("live");
const dialog = byId("thread");

const STEP_ORDER = ["searching", "reranking", "writing", "checking"];

// What each outcome is called, how it looks, and what a reader can do about it.
const OUTCOMES = {
  answered: { title: "Answer", look: "" },
  abstained: {
    title: "The messages do not answer this",
    look: "is-quiet",
    advice: (answer) => abstainedAdvice(answer.reason),
  },
  unverified: {
    title: "Not shown: the sources did not hold",
    look: "is-warn",
    advice: () => "A text was written, but its citations could not be verified. Asking again may help.",
  },
  refused: { title: "This question was refused", look: "is-warn" },
  sources_only: { title: "Messages found, but no answer written", look: "is-warn" },
  suppressed: { title: "Withheld: a source has just changed", look: "is-warn", again: true },
};

// What a reader can do depends on why nothing was found; a reason that already says it needs none.
const ADVICE = [
  [/^There is no channel /, "The channels that can be named stand at the bottom of this page."],
  [/^There is no message by /, "Write the name as it stands beside the person's messages."],
  [/^That is too little /, ""],
  [/^No message found mentions /, "Check its spelling, or ask without it."],
  [/none states a decision\.$/, "It may still be open."],
];

function abstainedAdvice(reason) {
  const known = ADVICE.find(([form]) => form.test(reason));
  return known ? known[1] : "Try other words, or a wider time span.";
}

// Errors that are not the server's: how each is called, and whether asking again can help.
const ERRORS = {
  INVALID_REQUEST: { title: "Please correct the question", look: "is-warn", mine: true },
  BODY_TOO_LARGE: { title: "Please shorten the question", look: "is-warn", mine: true },
  RATE_LIMITED: { title: "One moment, please", look: "is-warn" },
  WORKSPACE_NOT_FOUND: { title: "Nothing is loaded yet", look: "is-warn" },
  NO_ACTIVE_GENERATION: { title: "Nothing is loaded yet", look: "is-warn" },
};
const OUTAGE = { title: "Recall can not answer right now", look: "is-bad" };

const NOTES = {
  rerank_unavailable: "The ranking step did not respond, so the plain search order was used.",
  dense_incomplete: "Some messages are not indexed by meaning yet; those were found by words only.",
};

const TIERS = { jev: "Jev", luna: "Luna", rrf: "search rank" };
const WRITERS = { extractive: "quoted from the messages", openai: "written by a language model" };

let running = null;
let waitTimer = 0;

// ---- small builders ----

function element(name, properties = {}, ...children) {
  const { className, attributes = {}, ...rest } = properties;
  const made = Object.assign(document.createElement(name), rest);
  if (className) made.className = className;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

const INLINE = /(`[^`\n]+`|\*\*[^*\n]+\*\*|\*[^*\s](?:[^*\n]*[^*\s])?\*|https?:\/\/[^\s<>"]+)/g;

// Text with code, emphasis and links as elements.
function inline(text) {
  const made = document.createDocumentFragment();
  for (const piece of text.split(INLINE)) made.append(inlinePiece(piece));
  return made;
}

function inlinePiece(piece) {
  if (/^`[^`]+`$/.test(piece)) return element("code", { textContent: piece.slice(1, -1) });
  if (/^\*\*.+\*\*$/.test(piece)) return element("strong", { textContent: piece.slice(2, -2) });
  if (/^\*.+\*$/.test(piece)) return element("em", { textContent: piece.slice(1, -1) });
  if (/^https?:\/\//.test(piece)) return linked(piece);
  return document.createTextNode(piece);
}

function linked(text) {
  const [, address, rest] = text.match(/^(.*?)([.,;:!?)\]]*)$/s);
  const made = document.createDocumentFragment();
  made.append(outsideLink(address, address) ?? address, rest);
  return made;
}

function outsideLink(address, label) {
  if (!URL.canParse(address) || !/^https?:$/.test(new URL(address).protocol)) return null;
  return element("a", { href: address, textContent: label, target: "_blank", rel: "noopener noreferrer" });
}

const LINKED = /^(Linked (?:page|message)): /;

// A message's text: fenced code and quoted lines as blocks, the rest line by line.
function body(text) {
  const made = element("div", { className: "body" });
  text.split(/```(?:[a-z]*\n)?/).forEach((part, index) => {
    if (index % 2) made.append(element("pre", {}, element("code", { textContent: part.trimEnd() })));
    else if (part) made.append(...lines(index ? part.replace(/^\n/, "") : part));
  });
  return made;
}

function lines(text) {
  const runs = text.match(/(?:^>.*(?:\n|$))+|(?:^(?!>).*(?:\n|$))+/gm) ?? [];
  return runs.filter(Boolean).map((run) => (run.startsWith(">") ? quoted(run) : inline(run)));
}

function quoted(run) {
  const text = unquoted(run).trimEnd();
  const [mark, label] = text.match(LINKED) ?? [""];
  return element("blockquote", {},
    label ? element("span", { className: "linked", textContent: label }) : null,
    inline(text.slice(mark.length)));
}

function unquoted(text) {
  return text.replace(/^> ?/gm, "");
}

// A message on a few lines: the author's own words before what is quoted, no marks.
function gist(text) {
  const rows = text.split("\n");
  const own = rows.filter((row) => !row.startsWith(">")).join("\n").trim();
  return (own || unquoted(text)).replace(/[`*]+/g, "");
}

const dates = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "short", timeZone: "UTC" });

function when(message) {
  return `${dates.format(new Date(message.posted_at))} UTC`;
}

function seconds(milliseconds) {
  if (milliseconds < 995) return `${Math.round(milliseconds)} ms`;
  return `${(milliseconds / 1000).toFixed(milliseconds < 9950 ? 1 : 0)} s`;
}

// ---- asking ----

form.addEventListener("submit", (event) => {
  event.preventDefault();
  ask(box.value);
});

box.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    if (!send.disabled) form.requestSubmit();
  }
});

stop.addEventListener("click", () => running?.abort());

async function ask(question) {
  if (!question.trim()) return box.focus();
  running?.abort();
  const mine = (running = new AbortController());
  begin();
  try {
    const outcome = await fetchAnswer(question, mine.signal);
    if (running === mine) show(question, outcome);
  } catch (error) {
    if (running !== mine) return;
    if (error.name === "AbortError") showStopped();
    else showError(question, unreachable());
  } finally {
    if (running === mine) end();
  }
}

function begin() {
  clearInterval(waitTimer);
  send.disabled = false;
  result.hidden = true;
  byId("samples").hidden = true;
  steps.hidden = false;
  stop.hidden = false;
  send.hidden = true;
  mark("");
}

function end() {
  running = null;
  steps.hidden = true;
  const focused = document.activeElement === stop;
  stop.hidden = true;
  send.hidden = false;
  if (focused) result.hidden ? box.focus() : result.focus();
}

function mark(step) {
  const at = STEP_ORDER.indexOf(step);
  for (const item of steps.children) {
    const position = STEP_ORDER.indexOf(item.dataset.step);
    item.classList.toggle("done", position < at);
    item.classList.toggle("now", position === at);
    if (position === at) item.setAttribute("aria-current", "step");
    else item.removeAttribute("aria-current");
  }
}

// Resolves to {answer} or {error}; steps are shown while it waits.
async function fetchAnswer(question, signal) {
  const streaming = typeof ReadableStream === "function" && "getReader" in ReadableStream.prototype;
  const response = await fetch("/api/ask", {
    method: "POST",
    headers: {
      "Content-Type": "application/json",
      Accept: streaming ? "text/event-stream" : "application/json",
    },
    body: JSON.stringify({ question }),
    signal,
  });
  const kind = response.headers.get("Content-Type") ?? "";
  if (kind.startsWith("text/event-stream")) return lastEvent(response.body);
  const value = await response.json();
  return response.ok ? { answer: value } : { error: value.error };
}

async function lastEvent(stream) {
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
  let pending = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return { error: unreachable("The connection ended before the answer arrived.") };
    pending += value;
    const frames = pending.split("\n\n");
    pending = frames.pop();
    for (const frame of frames) {
      const [, name, data] = frame.match(/^event: (\w+)\ndata: (.*)$/) ?? [];
      if (name === "step") showStep(JSON.parse(data));
      if (name === "answer") return { answer: JSON.parse(data) };
      if (name === "error") return { error: JSON.parse(data).error };
    }
  }
}

function unreachable(message = "This page can not reach its server. Check the connection.") {
  return { reason: "UNREACHABLE", message, retry_after_seconds: null };
}

function showStep({ step, detail }) {
  mark(step);
  live.textContent = detail;
}

// ---- outcomes ----

function show(question, { answer, error }) {
  if (error) return showError(question, error);
  const outcome = OUTCOMES[answer.outcome] ?? { title: answer.outcome, look: "is-warn" };
  const parts = [prose(answer)];
  for (const line of [answer.reason, outcome.advice?.(answer)]) {
    if (line) parts.push(element("p", { className: "reason" }, inline(line)));
  }
  if (answer.citations.length) parts.push(sources("Sources", answer.citations, answer.text));
  if (answer.unverified_sources.length) {
    parts.push(sources("Best matches, not verified", answer.unverified_sources));
  }
  const notes = noted(answer.degraded);
  if (notes) parts.push(notes);
  if (outcome.again) parts.push(againButton(question));
  parts.push(meta(answer));
  present(question, outcome, parts);
}

function showError(question, error) {
  const kind = ERRORS[error.reason] ?? OUTAGE;
  const wait = element("p", { className: "reason", hidden: true });
  const again = kind.mine ? null : againButton(question);
  const message = error.message.replace(/^question: /, "");
  present(question, kind, [element("p", {}, inline(message)), wait, again].filter(Boolean));
  if (kind.mine) box.focus();
  if (error.retry_after_seconds && again) {
    countDown(Math.ceil(error.retry_after_seconds), wait, again, error.reason === "RATE_LIMITED");
  }
}

function showStopped() {
  live.textContent = "Stopped.";
  result.hidden = true;
  byId("samples").hidden = !byId("sample-list").children.length;
  box.focus();
}

function present(question, { title, look }, parts) {
  result.className = `result ${look}`;
  result.replaceChildren(
    element("p", { className: "asked", textContent: question }),
    element("h2", { id: "result-title", className: "outcome", textContent: title }),
    ...parts,
  );
  result.hidden = false;
  live.textContent = title;
  result.focus({ preventScroll: true });
  result.scrollIntoView({ block: "nearest" });
}

function countDown(left, line, again, limited) {
  line.hidden = false;
  const tick = () => {
    const waiting = left > 0;
    again.disabled = waiting;
    if (limited) send.disabled = waiting;
    line.textContent = waiting ? `You can ask again in ${left} s.` : "You can ask again now.";
    if (!waiting) clearInterval(waitTimer);
    left -= 1;
  };
  clearInterval(waitTimer);
  waitTimer = setInterval(tick, 1000);
  tick();
}

function againButton(question) {
  const made = element("button", { type: "button", className: "quiet again", textContent: question ? "Ask again" : "Look again" });
  made.addEventListener("click", () => (question ? ask(question) : welcome()));
  return made;
}

function prose(answer) {
  const made = element("div", { className: "prose" });
  let list = null;
  for (const block of answer.blocks) {
    const name = block.kind === "item" ? "li" : "p";
    const said = block.segments.map((segment) => segment.text ?? "").join(" ");
    const line = element(name, {},
      ...block.segments.map((segment) => shown(segment, answer.citations, said)));
    if (name === "p") {
      list = null;
      made.append(line);
    } else {
      if (!list) made.append((list = element("ul")));
      list.append(line);
    }
  }
  return made;
}

function shown(segment, citations, said) {
  if ("text" in segment) return inline(segment.text);
  const chips = segment.citations.map((number) => chip(number, citations[number - 1], said));
  return element("span", { className: "chips" }, ...chips);
}

function chip(number, message, said) {
  const label = `Source ${number}: ${message.author} in #${message.channel}, ${when(message)}`;
  const made = element("button", {
    type: "button",
    className: "chip",
    textContent: String(number),
    title: label,
    attributes: { "aria-label": label, "aria-haspopup": "dialog" },
  });
  made.addEventListener("click", () => openThread(message, said));
  return made;
}

function sources(title, messages, said = "") {
  const rows = messages.map((message, index) => element("li", {}, sourceButton(message, index + 1, said)));
  const heading = element("h3", { textContent: title });
  return element("div", { className: "sources" }, heading, element("ol", {}, ...rows));
}

function sourceButton(message, number, said) {
  const who = element("span", { className: "who" },
    element("b", { textContent: message.author }),
    element("span", { textContent: ` in #${message.channel}, ${when(message)}` }));
  const text = element("span", { className: "excerpt", textContent: gist(message.text) });
  const made = element("button", { type: "button", className: "source", attributes: { "aria-haspopup": "dialog" } },
    element("span", { className: "number", textContent: String(number) }),
    element("span", {}, who, text));
  made.addEventListener("click", () => openThread(message, said));
  return made;
}

function noted(degraded) {
  const lines = degraded
    .filter((word) => !word.endsWith(":not_configured") && word !== "answer_unavailable")
    .map((word) => NOTES[word] ?? tierNote(word) ?? word);
  if (!lines.length) return null;
  return element("ul", { className: "notes" }, ...lines.map((line) => element("li", { textContent: line })));
}

function tierNote(word) {
  const [kind, tier, cause] = word.split(":");
  return kind === "rerank" && cause ? `Ranking by ${TIERS[tier] ?? tier} failed (${cause}).` : null;
}

function meta(answer) {
  const facts = [
    TIERS[answer.rerank_tier] && `Ordered by ${TIERS[answer.rerank_tier]}`,
    answer.outcome === "answered" && WRITERS[answer.writer],
    answer.timings_ms.total !== undefined && `${seconds(answer.timings_ms.total)} in all`,
    ...["retrieve", "rerank", "answer"]
      .filter((stage) => answer.timings_ms[stage] !== undefined)
      .map((stage) => `${stage} ${seconds(answer.timings_ms[stage])}`),
  ];
  return element("p", { className: "meta", textContent: facts.filter(Boolean).join(" · ") });
}

// ---- the thread around a message ----

// ``said`` is the text that cites the message; the words it took are marked.
async function openThread(message, said) {
  const panel = byId("thread-body");
  byId("thread-title").textContent = `#${message.channel}`;
  panel.replaceChildren(element("p", { textContent: "Opening the thread…" }));
  // The panel reaches over the place of the page's scroll bar; the page must not move for it.
  const page = document.documentElement;
  page.style.setProperty("--scroll-bar", `${innerWidth - page.clientWidth}px`);
  dialog.showModal();
  byId("thread-title").focus();
  try {
    const response = await fetch(`/api/thread?message_id=${encodeURIComponent(message.message_id)}`);
    const value = await response.json();
    if (response.ok) showThread(value, said);
    else panel.replaceChildren(element("p", {}, inline(value.error.message)));
  } catch {
    panel.replaceChildren(element("p", { textContent: unreachable().message }));
  }
}

function showThread({ message_id: opened, messages }, said) {
  const replies = messages.length - 1;
  const size = replies > 0 ? `, thread with ${replies} ${replies === 1 ? "reply" : "replies"}` : "";
  if (messages.length) byId("thread-title").textContent = `#${messages[0].channel}${size}`;
  const panel = byId("thread-body");
  panel.replaceChildren(...messages.map((message, index) => posted(message, index > 0, opened)));
  const cited = panel.querySelector(".message.cited");
  if (!cited) return;
  markWords(cited.querySelector(".body"), said);
  // Of a message taller than the panel its head: who wrote it comes first.
  cited.scrollIntoView({ block: cited.offsetHeight < panel.clientHeight ? "center" : "start" });
}

const FEWEST_MARKED_WORDS = 3;

// Marks the longest run of words that a message's element shares with a text.
function markWords(element_, said) {
  const walker = document.createTreeWalker(element_, NodeFilter.SHOW_TEXT);
  const places = [];
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    if (node.parentElement.className === "linked") continue;
    for (const found of node.data.matchAll(/[\p{L}\p{N}]+/gu)) {
      places.push({ node, start: found.index, end: found.index + found[0].length, word: found[0] });
    }
  }
  const { at, size } = longestRun(places.map((place) => place.word), said.match(/[\p{L}\p{N}]+/gu) ?? []);
  if (size >= FEWEST_MARKED_WORDS) markPlaces(places.slice(at, at + size));
}

// Where the longest common run of words begins in ``told``, and its length.
function longestRun(told, said) {
  let best = { at: 0, size: 0 };
  let before = new Map();
  told.forEach((word, position) => {
    const sizes = new Map();
    said.forEach((other, index) => {
      if (other !== word) return;
      const size = (before.get(index - 1) ?? 0) + 1;
      sizes.set(index, size);
      if (size > best.size) best = { at: position - size + 1, size };
    });
    before = sizes;
  });
  return best;
}

function markPlaces(places) {
  const spans = new Map();
  for (const { node, start, end } of places) {
    spans.set(node, { start: spans.get(node)?.start ?? start, end });
  }
  for (const [node, { start, end }] of spans) {
    const rest = node.splitText(start);
    rest.splitText(end - start);
    rest.replaceWith(element("mark", { textContent: rest.data }));
  }
}

function posted(message, isReply, opened) {
  const cited = message.message_id === opened;
  const header = element("header", {},
    element("b", { textContent: message.author }),
    element("span", { textContent: ` ${when(message)}${message.edited_at ? " (edited)" : ""}` }),
    cited ? element("span", { className: "tag", textContent: "source" }) : null,
    message.permalink ? outsideLink(message.permalink, " open in Slack") : null);
  return element("article", {
    className: `message${isReply ? " reply" : ""}${cited ? " cited" : ""}`,
    attributes: cited ? { "aria-current": "true" } : {},
  }, header, body(message.text));
}

byId("thread-close").addEventListener("click", () => dialog.close());
dialog.addEventListener("click", (event) => {
  if (event.target === dialog) dialog.close();
});

// ---- the first moment ----

async function welcome() {
  try {
    const response = await fetch("/api/samples");
    const value = await response.json();
    if (!response.ok) return showError("", value.error);
    byId("workspace").textContent = `Workspace: ${value.workspace}`;
    const names = value.channels.map((name) => `#${name}`).join(", ");
    byId("scope").textContent = names
      ? `Reads the public channels of ${value.workspace}: ${names}. Private channels are never read here.`
      : `${value.workspace} has no public channel, so nothing can be read here.`;
    const first = value.channels.includes("general") ? "general" : value.channels[0];
    byId("example-channel").textContent = `in:#${first ?? "channel"}`;
    byId("example-day").hidden = !value.example_day;
    byId("example-day").textContent = `after:${value.example_day}`;
    box.placeholder = value.samples.length
      ? value.samples[0].question
      : `What did people say about … in #${first ?? "channel"}?`;
    byId("sample-list").replaceChildren(...value.samples.map(sample));
    byId("samples").hidden = !value.samples.length;
    result.hidden = true;
  } catch {
    showError("", unreachable());
  }
}

function sample({ question }) {
  const made = element("button", { type: "button", textContent: question });
  made.addEventListener("click", () => {
    box.value = question;
    ask(question);
  });
  return element("li", {}, made);
}

welcome();

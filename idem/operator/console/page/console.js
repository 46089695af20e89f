// Keeps the parts of a page that are marked data-live up to date, by reading the page again. What may be done (data-fence) is
// never replaced: a person decides about what they saw, and is told when that is not there any more.
(() => {
  "use strict";
  const every = 5000, within = 8000, stopAfter = 30 * 60 * 1000;
  const begun = Date.now();
  const note = document.getElementById("live-note");
  let failures = 0;
  const say = (text) => { if (note && note.textContent !== text) note.textContent = text; };
  const again = () => setTimeout(refresh, Math.min(every * 2 ** failures, 60000));

  async function refresh() {
    if (Date.now() - begun > stopAfter) return say("Live updates have ended.");
    if (document.hidden) return again();
    try {
      const answer = await fetch(location.href, { redirect: "error", cache: "no-store", signal: AbortSignal.timeout(within) });
      if (!answer.ok) throw new Error(answer.status);
      const whole = swap(new DOMParser().parseFromString(await answer.text(), "text/html"));
      failures = 0;
      say(whole ? "Live." : "Live, but for the part that has the focus: it is as of this time.");
    } catch {
      failures++;
      say("Live updates fail: this page may be out of date.");
    }
    again();
  }

  // Returns whether everything is as of now. What has the focus is not replaced under a person's hands, and the page stays as of
  // when that was read.
  function swap(fresh) {
    const parts = [...document.querySelectorAll("[data-live]")];
    const behind = (old) => {
      const next = fresh.getElementById(old.id);
      return next && next.innerHTML !== old.innerHTML && old.contains(document.activeElement);
    };
    const whole = !parts.some(behind);
    for (const old of parts) {
      const next = fresh.getElementById(old.id);
      if (!next || next.innerHTML === old.innerHTML || behind(old) || old.id === "as-of" && !whole) continue;
      const folded = next.querySelectorAll("details");
      old.querySelectorAll("details").forEach((d, i) => { if (d.open && folded[i]) folded[i].open = true; });
      const scrolled = old.querySelector(".scroll")?.scrollLeft;
      old.replaceWith(next);
      if (scrolled) next.querySelector(".scroll").scrollLeft = scrolled;
    }
    const fence = document.querySelector("[data-fence]"), now = fresh.querySelector("[data-fence]");
    if (fence && now && fence.dataset.fence !== now.dataset.fence) {
      document.getElementById("changed").hidden = false;
      fence.classList.add("outdated");
    }
    return whole;
  }

  say("Live.");
  again();
})();

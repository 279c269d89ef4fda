/* Worker for pages opened from disk, where browsers refuse real ones: the script runs in a hidden frame of the same
   origin. Only what the search needs: postMessage, onmessage, importScripts, terminate. */
(() => {
  if (location.protocol !== "file:") return;
  class FrameWorker extends EventTarget {
    constructor(url) {
      super();
      this.waiting = [];
      const frame = document.createElement("iframe");
      frame.hidden = true;
      frame.setAttribute("aria-hidden", "true");
      frame.srcdoc = "<!doctype html><title>search</title>";
      frame.addEventListener("load", () => this.start(new URL(url, document.baseURI).href), { once: true });
      this.frame = frame;
      (document.body || document.documentElement).appendChild(frame);
    }
    start(url) {
      const inner = this.frame.contentWindow;
      const load = address => new Promise((done, failed) => {
        const script = inner.document.createElement("script");
        script.src = new URL(address, url);
        script.onload = done;
        script.onerror = failed;
        inner.document.head.appendChild(script);
      });
      inner.importScripts = (...addresses) => Promise.all(addresses.map(load));
      /* What the worker posts reaches the page; what the page posts reaches the worker. */
      inner.postMessage = data => this.deliver(this, data);
      this.inner = inner;
      load(url).then(() => {
        this.ready = true;
        for (const data of this.waiting.splice(0)) this.deliver(inner, data);
      });
    }
    deliver(target, data) {
      setTimeout(() => {
        const event = new MessageEvent("message", { data });
        if (target === this && this.onmessage) this.onmessage(event);
        target.dispatchEvent(event);
      });
    }
    postMessage(data) {
      if (this.ready) this.deliver(this.inner, data);
      else this.waiting.push(data);
    }
    terminate() { this.frame.remove(); }
  }
  window.Worker = FrameWorker;
})();

// Search runs in a worker, and a browser starts none for a page that it has read from a file. Then
// an invisible frame does the work.
if (location.protocol === "file:")
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.body.appendChild(document.createElement("iframe"));
      frame.hidden = true;
      const inside = frame.contentWindow, deliver = (to, data) =>
        to.dispatchEvent(new MessageEvent("message", {data}));
      inside.postMessage = data => deliver(this, data);
      inside.importScripts = (...urls) => Promise.all(urls.map(one => this.load(inside, one)));
      this.ready = this.load(inside, url);
      this.postMessage = data => this.ready.then(() => deliver(inside, data));
    }
    load(inside, url) {
      const script = inside.document.createElement("script");
      return new Promise((done, failed) => {
        Object.assign(script, {src: url, onload: done, onerror: failed});
        inside.document.body.appendChild(script);
      });
    }
  };

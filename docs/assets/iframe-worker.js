// Pages that are opened as files cannot start workers: the script of the search runs in a hidden
// frame instead.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      // Without this, Firefox replaces the frame's first document by another one later.
      frame.contentDocument.open();
      frame.contentDocument.close();
      this.scope = frame.contentWindow;
      this.scope.postMessage = (data) => {
        this.dispatchEvent(new MessageEvent("message", { data }));
      };
      const script = frame.contentDocument.createElement("script");
      script.src = url;
      // Messages wait until the script listens.
      this.ready = new Promise((resolve) => (script.onload = resolve));
      frame.contentDocument.documentElement.append(script);
    }

    postMessage(data) {
      this.ready.then(() => this.scope.dispatchEvent(new MessageEvent("message", { data })));
    }
  };
}

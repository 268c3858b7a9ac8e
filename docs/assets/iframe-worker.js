// Pages that are opened as files cannot start workers: the script of the search runs in a hidden
// frame instead.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    onmessage = null;

    constructor(url) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      // Without this, Firefox replaces the frame's first document by another one later.
      this.frame.contentDocument.open();
      this.frame.contentDocument.close();
      this.scope = this.frame.contentWindow;
      this.scope.postMessage = (data) => {
        // As between a worker and a page, neither sees what the other does to a message.
        const message = new MessageEvent("message", { data: structuredClone(data) });
        this.dispatchEvent(message);
        this.onmessage?.(message);
      };
      const script = this.frame.contentDocument.createElement("script");
      script.src = url;
      // Messages wait until the script listens.
      this.ready = new Promise((resolve) => (script.onload = resolve));
      this.frame.contentDocument.documentElement.append(script);
    }

    postMessage(data) {
      const message = new MessageEvent("message", { data: structuredClone(data) });
      this.ready.then(() => this.scope.dispatchEvent(message));
    }

    terminate() {
      this.onmessage = null;
      this.frame.remove();
    }
  };
}

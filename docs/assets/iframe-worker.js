// Chromium starts no worker from file://. There, a frame that nobody sees does a worker's work, so that search works too.
if (location.protocol === "file:") {
  window.Worker = class {
    onmessage = null;
    onerror = null;

    constructor(url) {
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      this.inside = this.frame.contentWindow;
      this.inside.postMessage = (data) => setTimeout(() => this.onmessage?.({ data }));
      this.loaded = new Promise((resolve) => {
        const script = this.inside.document.createElement("script");
        script.src = new URL(url, location);
        script.onload = resolve;
        script.onerror = (error) => this.onerror?.(error);
        this.inside.document.body.append(script);
      });
    }

    postMessage(data) {
      this.loaded.then(() => this.inside.onmessage?.({ data }));
    }

    terminate() {
      this.frame.remove();
    }
  };
}

/* Search without a server: browsers refuse Worker on file: pages, so there a hidden frame takes its place.
   The frame is about:blank, which has the origin of this page; the worker's script finds its own `postMessage` in it. */
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      this.frame = document.createElement("iframe")
      this.frame.hidden = true
      document.body.appendChild(this.frame)
      const inside = this.frame.contentWindow
      inside.postMessage = (data) => this.tell(this, new MessageEvent("message", { data }))
      inside.importScripts = () => {}
      this.ready = new Promise((resolve, reject) => {
        const script = inside.document.createElement("script")
        script.src = url
        script.onload = resolve
        script.onerror = reject
        inside.document.body.appendChild(script)
      })
    }

    postMessage(data) {
      this.ready.then(() => this.tell(this.frame.contentWindow, new MessageEvent("message", { data })))
    }

    terminate() {
      this.frame.remove()
    }

    tell(whom, event) {
      if (whom === this && typeof this.onmessage === "function") this.onmessage(event)
      whom.dispatchEvent(event)
    }
  }
}

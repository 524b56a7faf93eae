import type { MessagePort } from 'node:worker_threads'

import type { ThreadChannel } from '../cluster/thread-channel.ts'

/**
 * A link between threads over a message port. It sends all posts of one callback as one message
 * with all their buffers, because sending a message costs far more than its content.
 */
export class MessagePortLink<In, Out> implements ThreadChannel<In, Out> {
  readonly #port: MessagePort
  #handler: ((message: In) => void) | null = null
  /** Messages that arrived before the link had a handler. */
  #early: In[] = []
  #posts: Out[] = []
  #transfer: ArrayBuffer[] = []

  constructor(port: MessagePort) {
    this.#port = port
    port.on('message', (batch: readonly In[]) => {
      for (const message of batch) this.deliver(message)
    })
  }

  get onMessage(): (message: In) => void {
    return this.#handler ?? (() => undefined)
  }

  set onMessage(handler: (message: In) => void) {
    this.#handler = handler
    for (const message of this.#early.splice(0)) handler(message)
  }

  post(message: Out, transfer: readonly ArrayBuffer[] = []): void {
    this.#posts.push(message)
    this.#transfer.push(...transfer)
    if (this.#posts.length === 1) queueMicrotask(() => this.#flush())
  }

  close(): void {
    this.#flush()
    this.#port.close()
  }

  protected deliver(message: In): void {
    if (this.#handler === null) this.#early.push(message)
    else this.#handler(message)
  }

  #flush(): void {
    if (this.#posts.length === 0) return
    const posts = this.#posts
    const transfer = this.#transfer
    this.#posts = []
    this.#transfer = []
    this.#port.postMessage(posts, transfer)
  }
}

import { get as getHttp, type IncomingHttpHeaders, type IncomingMessage } from 'node:http'
import { get as getHttps } from 'node:https'

export type EventJson = Readonly<Record<string, unknown>>

interface Named {
  readonly name: string
  readonly data: EventJson
}

/** A client that parses server-sent events according to the HTML standard. */
export class EventTap {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly #answer: IncomingMessage
  readonly #read: Named[] = []
  #text = ''
  lastId = ''
  isEnded = false

  private constructor(answer: IncomingMessage) {
    this.status = answer.statusCode ?? 0
    this.headers = answer.headers
    this.#answer = answer
    answer.setEncoding('utf8')
    answer.on('data', (chunk: string) => this.#take(chunk))
    answer.on('close', () => {
      this.isEnded = true
    })
    answer.on('error', () => undefined)
  }

  static open(
    url: string,
    headers: Readonly<Record<string, string>>,
    ca?: string,
  ): Promise<EventTap> {
    return new Promise((resolve, reject) => {
      const onAnswer = (answer: IncomingMessage): void => resolve(new EventTap(answer))
      const options = {
        headers: { accept: 'text/event-stream', ...headers },
        agent: false,
      } as const
      const request = url.startsWith('https:')
        ? getHttps(url, { ...options, ...(ca === undefined ? {} : { ca }) }, onAnswer)
        : getHttp(url, options, onAnswer)
      request.on('error', reject)
    })
  }

  /** Everything that the server has sent, for tests that search it for forbidden content. */
  raw = ''

  /** All received events that have no name. */
  get events(): readonly EventJson[] {
    return this.of('message')
  }

  of(name: string): readonly EventJson[] {
    return this.#read.filter((one) => one.name === name).map(({ data }) => data)
  }

  close(): void {
    this.#answer.destroy()
  }

  #take(chunk: string): void {
    this.raw += chunk
    if (this.headers['content-type'] !== 'text/event-stream') return
    this.#text += chunk
    const blocks = this.#text.split('\n\n')
    this.#text = blocks.pop() ?? ''
    for (const block of blocks) this.#onBlock(block)
  }

  #onBlock(block: string): void {
    let [name, data] = ['message', '']
    for (const line of block.split('\n')) {
      const [field = '', ...rest] = line.split(': ')
      const value = rest.join(': ')
      if (field === 'id') this.lastId = value
      else if (field === 'event') name = value
      else if (field === 'data') data = value
    }
    if (data !== '') this.#read.push({ name, data: JSON.parse(data) as EventJson })
  }
}

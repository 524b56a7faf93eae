import { createHash, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { once } from 'node:events'

import { CommandFailure, EXIT_FAILED } from '../../controller/command-failure.ts'
import { createServer } from '../../lib/runtime/node-http.ts'
import { startListening, listeningPort } from '../../lib/runtime/listening.ts'
import { escapeHtml } from '../../lib/text/escape-html.ts'

export const redirectListenerLimits = {
  /**
   * Time to wait for the user, equal to the time for which a controller waits for the user's input.
   */
  logInMs: 10 * 60_000,
  /**
   * Number of requests that do not belong to the log-in, for example from other programs on this
   * host, at which the log-in fails.
   */
  strayRequestsMax: 100,
  /**
   * Maximum open connections of the listener for the browser; further connections are closed
   * immediately.
   */
  redirectConnectionsMax: 16,
  /**
   * Maximum time for a request of the browser to arrive; after that, its connection is closed.
   */
  redirectRequestMs: 10_000,
} as const

const PATH = '/auth/callback'

/** The parameters with which the controller redirected the browser. */
interface RedirectAnswer {
  readonly parameters: URLSearchParams
  /** Shows the result of the log-in to the user. */
  show(outcome: { readonly isLoggedIn: boolean; readonly text: string }): void
}

/**
 * Receives the redirect of one log-in in a browser on this host (RFC 8252, 7.3). It binds its port
 * before the log-in begins, so that no other program can receive the redirect. Requests with
 * another `state` do not end the log-in, unless too many arrive.
 */
export class RedirectListener {
  readonly #server = createServer({ keepAlive: false })
  #strays = 0

  static async open(): Promise<RedirectListener> {
    const made = new RedirectListener()
    made.#server.maxConnections = redirectListenerLimits.redirectConnectionsMax
    made.#server.headersTimeout = redirectListenerLimits.redirectRequestMs
    made.#server.requestTimeout = redirectListenerLimits.redirectRequestMs
    await startListening(made.#server, { host: '127.0.0.1', port: 0, exclusive: true })
    return made
  }

  get uri(): string {
    return `http://${this.#host}${PATH}`
  }

  get #host(): string {
    return `127.0.0.1:${listeningPort(this.#server)}`
  }

  /**
   * Waits for the redirect with this `state`.
   * @throws {CommandFailure} when it does not arrive in time, or after too many other requests.
   */
  wait(state: string, timeoutMs: number = redirectListenerLimits.logInMs): Promise<RedirectAnswer> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        reject(new CommandFailure(EXIT_FAILED, 'no log-in came from the browser in time'))
      }, timeoutMs)
      let isTaken = false
      this.#server.on('request', (request, response) => {
        const parameters = isTaken ? null : this.#parametersOf(request, state)
        if (parameters === null) {
          this.#refuse(response)
          if (this.#strays < redirectListenerLimits.strayRequestsMax) return
          clearTimeout(timer)
          const sentence = 'too many other requests came to the port that waits for the browser'
          reject(new CommandFailure(EXIT_FAILED, `${sentence}; log in again`))
          return
        }
        isTaken = true
        clearTimeout(timer)
        resolve({ parameters, show: (outcome) => send(response, 200, redirectPage(outcome)) })
      })
    })
  }

  /** Stops listening, and waits until the last page has been sent, for at most one second. */
  async close(): Promise<void> {
    const closed = once(this.#server, 'close')
    this.#server.close()
    const timer = setTimeout(() => this.#server.closeAllConnections(), 1000)
    await closed
    clearTimeout(timer)
  }

  /** Null if the request is not the redirect of this log-in. */
  #parametersOf({ method, url, headers }: IncomingMessage, state: string): URLSearchParams | null {
    // A request for another host name may come from a web page that scans the ports of this host.
    // @guard log-in-at-the-terminal--host
    if (method !== 'GET' || headers.host !== this.#host) return null
    const asked = URL.parse(url ?? '', this.uri)
    if (asked?.pathname !== PATH) return null
    // @guard log-in-at-the-terminal--state
    return isSame(asked.searchParams.get('state') ?? '', state) ? asked.searchParams : null
  }

  #refuse(response: ServerResponse): void {
    this.#strays += 1
    const text = 'This is not the log-in that waits here. Begin again with: flotilla login'
    send(response, 400, redirectPage({ isLoggedIn: false, text }))
  }
}

function isSame(a: string, b: string): boolean {
  const [one, other] = [a, b].map((text) => createHash('sha256').update(text).digest())
  return one !== undefined && other !== undefined && timingSafeEqual(one, other)
}

function send(response: ServerResponse, status: number, page: string): void {
  response.writeHead(status, {
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy':
      "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
    'referrer-policy': 'no-referrer',
    'cache-control': 'no-store',
    connection: 'close',
  })
  response.end(page)
}

const style =
  ':root{color-scheme:light dark}body{font-family:system-ui,sans-serif;margin:0;min-height:100vh;' +
  'display:grid;place-items:center;background:light-dark(#f3f5f8,#10161d);' +
  'color:light-dark(#1b2733,#e6ebf1)}main{width:min(26rem,86vw);padding:2rem;border-radius:.75rem;' +
  'background:light-dark(#fff,#19222c)}h1{font-size:1.25rem;margin:0 0 .75rem}p{margin:0;line-height:1.5}'

/** Page that a browser shows at the end of the log-in, or for a request that is not part of it. */
function redirectPage({
  isLoggedIn,
  text,
}: {
  readonly isLoggedIn: boolean
  readonly text: string
}): string {
  const title = isLoggedIn ? 'You are logged in' : 'The log-in failed'
  return (
    '<!doctype html><html lang="en"><head><meta charset="utf-8">' +
    '<meta name="viewport" content="width=device-width,initial-scale=1">' +
    `<title>${title}</title><style>${style}</style></head>` +
    `<body><main><h1>${title}</h1><p>${escapeHtml(text)}</p></main></body></html>\n`
  )
}

import { createRequire } from 'node:module'
import { type Browser, firefox } from 'playwright-core'

/** The part of Playwright's WebSocket that this file uses. */
interface BidiSocket {
  emit: (this: BidiSocket, event: string, data: unknown, ...rest: readonly unknown[]) => boolean
  send: (this: BidiSocket, data: string, ...rest: readonly unknown[]) => void
}

interface BidiMessage {
  readonly id?: number
  readonly method?: string
  readonly params?: Readonly<Record<string, unknown>>
}

const MEDIA = 'emulation.setMediaFeaturesOverride'
const DOWNLOAD = /^browsingContext\.download(WillBegin|End)$/

let isPatched = false

/**
 * Adapts Playwright to the WebDriver BiDi implementation of Firefox ESR 153. Firefox lacks the
 * command that sets the color scheme, which Playwright sends for each context. Its download events
 * have no ID, and Playwright ignores events without an ID.
 */
function adaptPlaywright(): void {
  if (isPatched) return
  isPatched = true
  const bundle = createRequire(import.meta.url)('playwright-core/lib/utilsBundle') as {
    readonly ws: { readonly prototype: BidiSocket }
  }
  const { prototype } = bundle.ws
  const { send, emit } = prototype
  prototype.send = function sendOrAnswer(data, ...rest) {
    const { id, method } = JSON.parse(data) as BidiMessage
    if (method !== MEDIA) return send.call(this, data, ...rest)
    const answer = JSON.stringify({ type: 'success', id, result: {} })
    setImmediate(() => emit.call(this, 'message', Buffer.from(answer), false))
  }
  prototype.emit = function emitWithIds(event, data, ...rest) {
    const isMessage = event === 'message' && Buffer.isBuffer(data)
    return emit.call(this, event, isMessage ? withDownloadId(data) : data, ...rest)
  }
}

/** Uses the URL of the blob as the ID of a download, because it is different for each download. */
function withDownloadId(data: Buffer): Buffer {
  if (!data.includes('"browsingContext.download')) return data
  const message = JSON.parse(data.toString('utf8')) as BidiMessage
  const { method = '', params = {} } = message
  if (!DOWNLOAD.test(method)) return data
  const download = params['download'] ?? params['navigation'] ?? params['url']
  return Buffer.from(JSON.stringify({ ...message, params: { ...params, download } }))
}

/**
 * Starts an installed Firefox, unpatched, through WebDriver BiDi. All its pages have one color
 * scheme.
 */
export async function launchFirefox(
  executablePath: string,
  { isDark, ports }: { readonly isDark: boolean; readonly ports: readonly number[] },
): Promise<Browser> {
  adaptPlaywright()
  return await firefox.launch({
    channel: 'moz-firefox',
    executablePath,
    firefoxUserPrefs: {
      'ui.systemUsesDarkTheme': isDark ? 1 : 0,
      'network.security.ports.banned.override': ports.join(','),
      // With it, Firefox ESR 153 crashes when Playwright or axe reads `ariaLabelledByElements` a
      // second time, after the labeled element was moved in the document.
      'accessibility.ARIAElementReflection.enabled': false,
    },
  })
}

import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core'

import { launchFirefox } from './firefox.ts'

/** `FIREFOX=/usr/bin/firefox-esr` runs the tests in Firefox instead of Chromium. */
const firefoxPath = process.env['FIREFOX']
export const isFirefox = firefoxPath !== undefined

const executablePath = firefoxPath ?? process.env['CHROMIUM'] ?? '/usr/bin/chromium'

/** Why the tests that need a browser are skipped; null if a browser is installed. */
export const browserMissing: string | null = existsSync(executablePath)
  ? null
  : `skipped: no browser at ${executablePath}; on Debian: apt-get install chromium, elsewhere set CHROMIUM`

/** Ports above 1024 that browsers refuse; a test's controller may use one of them by chance. */
const refusedPorts = [
  1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669,
  6679, 6697, 10080,
]

export type Scheme = 'light' | 'dark'

export interface PageOptions {
  readonly scheme?: Scheme
  readonly width?: number
  /** A client certificate that the browser presents to an origin, PEM. */
  readonly certificate?: { readonly origin: string; readonly cert: Buffer; readonly key: Buffer }
}

/** A finding of the accessibility checker axe, as text. */
export type AxeFinding = string

/**
 * Programs for the browser as strings, because these tests are compiled without the types of the
 * DOM.
 */
const tellViolations = `document.addEventListener('securitypolicyviolation', (event) => {
  console.error('policy violated: ' + event.violatedDirective + ' by ' + event.blockedURI)
})`
const runAxe = `axe
  .run(document, {
    runOnly: {
      type: 'tag',
      values: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'],
    },
  })
  .then(({ violations }) =>
    violations.flatMap(({ id, nodes }) =>
      nodes.map(({ target, failureSummary }) => id + ': ' + target + ': ' + failureSummary),
    ),
  )`

const axePath = createRequire(import.meta.url).resolve('axe-core/axe.min.js')

/**
 * A browser that shows the console. It collects everything that pages report: errors in the console
 * of the browser, violations of the content security policy, exceptions.
 */
export class ConsoleBrowser {
  readonly complaints: string[] = []
  readonly #browsers = new Map<Scheme, Promise<Browser>>()
  readonly #contexts: BrowserContext[] = []

  private constructor(browser: Browser) {
    this.#browsers.set('light', Promise.resolve(browser))
  }

  static async start(): Promise<ConsoleBrowser> {
    return new ConsoleBrowser(await launchBrowser('light'))
  }

  /**
   * All pages in one Firefox have the same color scheme, so each scheme needs its own browser. A
   * browser that has crashed is started again.
   */
  async #browserFor(scheme: Scheme): Promise<Browser> {
    const key = isFirefox ? scheme : 'light'
    const running = await this.#browsers.get(key)
    if (running?.isConnected() === true) return running
    const started = launchBrowser(key)
    this.#browsers.set(key, started)
    return await started
  }

  async page({ scheme = 'light', width = 1280, certificate }: PageOptions = {}): Promise<Page> {
    const browser = await this.#browserFor(scheme)
    const context = await browser.newContext({
      ignoreHTTPSErrors: true,
      colorScheme: scheme,
      viewport: { width, height: 860 },
      ...(certificate === undefined ? {} : { clientCertificates: [certificate] }),
    })
    this.#contexts.push(context)
    await context.addInitScript({ content: tellViolations })
    const page = await context.newPage()
    page.on('pageerror', ({ message }) => {
      if (!isOfScreenshot(message)) this.complaints.push(`exception: ${message}`)
    })
    page.on('console', (message) => {
      const text = message.text()
      if (message.type() === 'error' && !isAnswer(text) && !isOfScreenshot(text)) {
        this.complaints.push(text)
      }
    })
    return page
  }

  /**
   * Closes all pages, because an identity may have only a limited number of event streams, and each
   * browser uses one.
   */
  async closePages(): Promise<void> {
    for (const context of this.#contexts.splice(0)) await context.close()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.closePages()
    for (const browser of this.#browsers.values()) await (await browser).close()
  }
}

async function launchBrowser(scheme: Scheme): Promise<Browser> {
  if (isFirefox) {
    const isDark = scheme === 'dark'
    return await launchFirefox(executablePath, { isDark, ports: refusedPorts })
  }
  const isRoot = process.getuid?.() === 0
  return await chromium.launch({
    executablePath,
    args: [
      '--disable-dev-shm-usage',
      `--explicitly-allowed-ports=${refusedPorts.join(',')}`,
      ...(isRoot ? ['--no-sandbox'] : []),
    ],
  })
}

/**
 * Whether the browser has logged an error response or an unreachable controller; the page shows the
 * consequence.
 */
function isAnswer(text: string): boolean {
  return text.startsWith('Failed to load resource')
}

/** Digest of the style `body {}`. */
const screenshotStyle = 'sha256-YjaKGiklmzC6wjXA513HAMmzus8VE61XCOT+SmwNZWA='

/**
 * For each screenshot, Playwright adds an empty style to Firefox, which the policy of the page
 * forbids. Firefox reports every style that the policy blocks a second time with its digest.
 */
function isOfScreenshot(text: string): boolean {
  if (!isFirefox) return false
  return text === 'policy violated: style-src-elem by inline' || text.includes(screenshotStyle)
}

export interface Account {
  readonly username: string
  readonly password: string
}

export async function logIn(page: Page, url: string, account: Account): Promise<void> {
  await page.goto(url)
  await fillLogIn(page, account)
  await page.locator('nav a').first().waitFor({ state: 'attached' })
}

export async function fillLogIn(page: Page, { username, password }: Account): Promise<void> {
  await page.getByLabel('User name').fill(username)
  await page.getByLabel('Password').fill(password)
  await page.getByRole('button', { name: 'Log in', exact: true }).click()
}

/** Accessibility faults on the current page (WCAG 2.2, A and AA). */
export async function axeFindings(page: Page): Promise<readonly AxeFinding[]> {
  // The page's policy permits no foreign script, but the browser runs this one for the test.
  await page.evaluate(`${await readFile(axePath, 'utf8')};undefined`)
  return await page.evaluate<readonly AxeFinding[]>(runAxe)
}

/** Whether the page is wider than its window, so that a person would have to scroll sideways. */
export async function overflows(page: Page): Promise<boolean> {
  return await page.evaluate<boolean>('document.documentElement.scrollWidth > innerWidth')
}

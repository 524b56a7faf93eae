import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, expect } from 'vitest'

import { TestCluster } from '../../process/support/cluster.ts'
import { type Account, browserMissing, ConsoleBrowser, logIn } from './console-browser.ts'

/** Folder for screenshots of the pages, for a person to check. */
export const shots = join(import.meta.dirname, '../../../.test/console')

export const management = '/edge/management/v1'

export type Body = Readonly<Record<string, unknown>>

/** A cluster of controllers, and a browser that shows its console. */
export class ConsoleNetwork {
  #cluster: TestCluster | null = null
  #browser: ConsoleBrowser | null = null

  get cluster(): TestCluster {
    if (this.#cluster === null) throw new Error('the cluster has not been started')
    return this.#cluster
  }

  get browser(): ConsoleBrowser {
    if (this.#browser === null) throw new Error('the browser has not been started')
    return this.#browser
  }

  /** @param env environment variables with options of the controllers. */
  async start(env: Record<string, string>): Promise<void> {
    mkdirSync(shots, { recursive: true })
    // Uses the delays of real controllers; prints how soon the console continues.
    this.#cluster = await TestCluster.start({ routers: 2, hasCalmElections: false, env })
    this.#browser = await ConsoleBrowser.start()
  }

  async end(): Promise<void> {
    await this.#browser?.[Symbol.asyncDispose]()
    await this.#cluster?.[Symbol.asyncDispose]()
  }

  url(k: number, path = ''): string {
    return `${this.cluster.admin.controllers[k - 1]}/console/${path}`
  }

  /** Opens a page of the console and logs in. */
  async open(k: number, path = '', account: Account = this.cluster.admin): Promise<Page> {
    const page = await this.browser.page()
    await this.logIn(page, path, k, account)
    return page
  }

  /** Logs in on a page, and goes to a path of the console. */
  async logIn(page: Page, path = '', k = 1, account: Account = this.cluster.admin): Promise<void> {
    await logIn(page, this.url(k), account)
    if (path !== '') await page.goto(this.url(k, path))
  }

  async send(method: 'POST' | 'PATCH' | 'DELETE', path: string, body: Body = {}): Promise<Body> {
    const client = await this.cluster.loggedIn(1)
    const answer = await client.request(method, `${management}/${path}`, { body })
    expect(answer.status, JSON.stringify(answer.body)).toBeLessThan(300)
    return (answer.body.data ?? {}) as Body
  }

  /** @returns the id of the new record. */
  async create(collection: string, body: Body): Promise<string> {
    return String((await this.send('POST', collection, body))['id'])
  }

  async rowsOf(collection: string, filter: string): Promise<readonly Body[]> {
    const client = await this.cluster.loggedIn(1)
    const path = `${management}/${collection}?filter=${encodeURIComponent(filter)}`
    return (await client.request('GET', path)).body.data as readonly Body[]
  }

  async recordOf(collection: string, name: string): Promise<Body & { readonly id: string }> {
    const [row] = await this.rowsOf(collection, `name = ${JSON.stringify(name)}`)
    if (row === undefined) throw new Error(`no ${collection} is named ${name}`)
    return row as Body & { readonly id: string }
  }
}

/**
 * Starts a network for the tests of a file, with these options of its controllers. After each test,
 * the browser must have reported no faults.
 */
export function consoleNetwork(
  makeRecords: (network: ConsoleNetwork) => Promise<void>,
  env: () => Promise<Record<string, string>> = () => Promise.resolve({}),
): ConsoleNetwork {
  const network = new ConsoleNetwork()
  beforeAll(async () => {
    if (browserMissing !== null) {
      console.log(browserMissing)
      return
    }
    await network.start(await env())
    await makeRecords(network)
  })
  afterAll(() => network.end())
  afterEach(async () => {
    if (browserMissing !== null) return
    await network.browser.closePages()
    expect(network.browser.complaints.splice(0)).toEqual([])
  })
  return network
}

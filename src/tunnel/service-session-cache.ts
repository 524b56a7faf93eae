import { type ControllerApi, objectOrEmpty, readTextField } from './controller-api.ts'
import { readEdgeRouters } from './edge-router-addresses.ts'

/** A service session: the right to dial or host one service. Edge routers require its token. */
export interface OpenedServiceSession {
  readonly token: string
  /** Names of the edge routers that accept the session. */
  readonly routers: ReadonlySet<string>
  readonly openedMs: number
}

interface ServiceSessionCacheDeps {
  readonly api: Pick<ControllerApi, 'post'>
  readonly clock: { readonly monotonicMs: () => number }
}

/** Service sessions of an identity, created on demand and cached. */
export class ServiceSessionCache {
  readonly #deps: ServiceSessionCacheDeps
  #opened = new Map<string, Promise<OpenedServiceSession>>()

  constructor(deps: ServiceSessionCacheDeps) {
    this.#deps = deps
  }

  /**
   * Returns a cached or a new session.
   * @throws {Error} with a message of one clause.
   */
  async of(serviceId: string, type: 'Dial' | 'Bind'): Promise<OpenedServiceSession> {
    const key = `${type} ${serviceId}`
    const known = this.#opened.get(key)
    if (known !== undefined) return await known
    const opened = this.#open(serviceId, type)
    this.#opened.set(key, opened)
    try {
      return await opened
    } catch (error) {
      if (this.#opened.get(key) === opened) this.#opened.delete(key)
      throw error
    }
  }

  /** Drops the cached session; the next use creates a new session. */
  forget(serviceId: string, type: 'Dial' | 'Bind'): void {
    this.#opened.delete(`${type} ${serviceId}`)
  }

  /**
   * Drops the sessions of all services that the identity may no longer use.
   * @param isKept whether the identity may still use the service.
   */
  keepOnly(isKept: (serviceId: string, type: 'Dial' | 'Bind') => boolean): void {
    for (const key of Array.from(this.#opened.keys())) {
      const [type = '', id = ''] = key.split(' ')
      if (!isKept(id, type === 'Bind' ? 'Bind' : 'Dial')) this.#opened.delete(key)
    }
  }

  /**
   * Called when an edge router has connected. Drops sessions that do not list this edge router,
   * because they may have been created before it was online.
   */
  async forgetWithout(routerName: string): Promise<void> {
    for (const [key, opened] of Array.from(this.#opened)) {
      const session = await opened.catch(() => null)
      const isStale = session !== null && !session.routers.has(routerName)
      if (isStale && this.#opened.get(key) === opened) this.#opened.delete(key)
    }
  }

  /** Drops all service sessions, because the API session has ended. */
  clear(): void {
    this.#opened = new Map()
  }

  async #open(serviceId: string, type: 'Dial' | 'Bind'): Promise<OpenedServiceSession> {
    const shown = objectOrEmpty(await this.#deps.api.post('/sessions', { serviceId, type }))
    const token = readTextField(shown, 'token')
    if (token === '') throw new Error('the controller has answered without a service session')
    const routers = readEdgeRouters(shown['edgeRouters']).map(({ name }) => name)
    return { token, routers: new Set(routers), openedMs: this.#deps.clock.monotonicMs() }
  }
}

import { type Client, until } from '../process/support/client.ts'

export interface Credentials {
  readonly username: string
  readonly password: string
}

interface Listed {
  readonly id: string
  readonly name: string
}

const BASE = '/edge/management/v1'
/** The session header that OpenZiti's own clients use. */
const SESSION_HEADER = 'zt-session'

/** A logged-in administrator at one controller, an OpenZiti controller or ours. */
export class ManagementApi {
  readonly #client: Client
  readonly #token: string

  private constructor(client: Client, token: string) {
    this.#client = client
    this.#token = token
  }

  /** Waits until the controller accepts the password. */
  static async logIn(client: Client, body: Credentials): Promise<ManagementApi> {
    const path = `${BASE}/authenticate?method=password`
    const token = await until(`log in at ${client.baseUrl}`, async () => {
      const answer = await client.request('POST', path, { body, isHeld: false })
      if (answer.status !== 200) throw new Error(`${answer.status}: ${answer.text}`)
      return (answer.body.data as { readonly token: string }).token
    })
    return new ManagementApi(client, token)
  }

  /** @returns the ID of the created record. */
  async post(path: string, body: Record<string, unknown>): Promise<string> {
    return (await this.#request<{ id: string }>('POST', path, body)).id
  }

  async detail<T = Record<string, unknown>>(path: string): Promise<T> {
    return await this.#request<T>('GET', path)
  }

  async list<T extends Listed = Listed>(path: string): Promise<readonly T[]> {
    return await this.#request<T[]>('GET', `${path}?limit=500`)
  }

  async #request<T>(method: string, path: string, body?: Record<string, unknown>): Promise<T> {
    const answer = await this.#client.request(method, `${BASE}/${path}`, {
      ...(body === undefined ? {} : { body }),
      headers: { [SESSION_HEADER]: this.#token },
      isHeld: false,
    })
    if (answer.status < 300) return answer.body.data as T
    throw new Error(`${method} ${path} answered ${answer.status}: ${answer.text}`)
  }
}

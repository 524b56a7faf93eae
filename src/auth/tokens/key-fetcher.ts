import { lookup } from 'node:dns/promises'
import type { LookupAddress } from 'node:dns'
import { request as requestPlain } from '../../lib/runtime/node-http.ts'
import type { IncomingMessage } from 'node:http'
import { request as requestTls } from 'node:https'
import { BlockList, isIP, type LookupFunction } from 'node:net'
import { getCACertificates } from 'node:tls'
import { isReservedAddress, isReservedHost, canReachAddressIn } from '../../lib/reserved-hosts.ts'

interface KeyEndpointLimits {
  /** Time from the DNS lookup to the end of the response. */
  readonly keyFetchMsMax: number
  readonly keySetBytesMax: number
  readonly keyLookupsMax: number
}

/** Which URLs of signers and providers may be fetched, by configuration. */
export interface KeyFetchRules {
  /**
   * True: loopback and unspecified addresses are also allowed. Link-local and metadata addresses
   * are never allowed.
   */
  readonly allowsReserved: boolean
  /** True: URLs without TLS are allowed. */
  readonly allowsHttp: boolean
  /** Networks from which nothing is fetched, in the form `address/prefix`. */
  readonly refusedNetworks: readonly string[]
  /**
   * CA certificates that are trusted in addition to the CA certificates of the operating system; ''
   * for none.
   */
  readonly caPem: string
}

/**
 * A failed fetch of keys, of a discovery document or of tokens. The message is for logs and
 * administrators.
 */
export class KeyFetchError extends Error {
  override readonly name = 'KeyFetchError'
}

type Resolve = (host: string) => Promise<readonly LookupAddress[]>

const ADDRESSES_MAX = 8
const TYPES: ReadonlySet<string> = new Set([
  'application/json',
  'application/jwk-set+json',
  'application/jwk+json',
])

/**
 * Fetches the keys of a signer from its URL, and the discovery document and tokens of its provider.
 * The host name is resolved once, and each address is checked. The connection uses the checked
 * addresses, so a later change of the DNS answer has no effect. Redirects are not followed.
 */
export class KeyFetcher {
  readonly #limits: KeyEndpointLimits
  readonly #rules: KeyFetchRules
  readonly #refused: BlockList
  readonly #resolve: Resolve
  #lookups = 0

  /** @param resolve resolves host names; by default the system's resolver. */
  constructor(
    limits: KeyEndpointLimits,
    rules: KeyFetchRules,
    resolve: Resolve = (host) => lookup(host, { all: true }),
  ) {
    this.#limits = limits
    this.#rules = rules
    this.#resolve = resolve
    this.#refused = blockListOf(rules.refusedNetworks)
  }

  /**
   * @param form values that are sent by POST; without `form`, the request is a GET.
   * @throws {KeyFetchError}
   */
  async fetch(address: string, form?: Readonly<Record<string, string>>): Promise<string> {
    const url = this.#judgedUrl(address)
    const signal = AbortSignal.timeout(this.#limits.keyFetchMsMax)
    try {
      const addresses = await untilAborted(this.#addressesOf(url), signal)
      return await this.#read(await this.#ask(url, addresses, signal, form))
    } catch (error) {
      if (error instanceof KeyFetchError) throw error
      const { message } = error as Error
      throw new KeyFetchError(signal.aborted ? 'timed out' : message, { cause: error })
    }
  }

  #judgedUrl(address: string): URL {
    const url = URL.parse(address)
    if (url === null || url.username !== '' || url.password !== '') {
      throw new KeyFetchError('not a URL without credentials')
    }
    const isTaken =
      url.protocol === 'https:' || (url.protocol === 'http:' && this.#rules.allowsHttp)
    // @guard signer-keys--http
    if (!isTaken) throw new KeyFetchError('not an https URL')
    if (isReservedHost(url, this.#rules.allowsReserved)) throw refusedAddress()
    return url
  }

  async #addressesOf({ hostname }: URL): Promise<readonly LookupAddress[]> {
    const host = hostname.replace(/^\[|\]$/g, '')
    const family = isIP(host)
    const found = family === 0 ? await this.#lookUp(host) : [{ address: host, family }]
    const addresses = found.slice(0, ADDRESSES_MAX)
    // If the name resolves to any refused address, the fetch is refused: a mix of allowed and
    // refused addresses suggests an attack.
    // @guard signer-keys--resolved
    if (addresses.length === 0 || addresses.some(({ address }) => this.#isRefused(address))) {
      throw refusedAddress()
    }
    return addresses
  }

  /**
   * Limits the number of concurrent lookups. A hanging lookup continues after its fetch has timed
   * out, and occupies a libuv thread that the state store also needs.
   */
  async #lookUp(host: string): Promise<readonly LookupAddress[]> {
    // @guard signer-keys--lookups
    if (this.#lookups >= this.#limits.keyLookupsMax) {
      throw new KeyFetchError('too many other DNS lookups have not been answered')
    }
    this.#lookups += 1
    try {
      return await this.#resolve(host)
    } finally {
      this.#lookups -= 1
    }
  }

  #isRefused(address: string): boolean {
    // @guard signer-keys--metadata
    if (isReservedAddress(address, this.#rules.allowsReserved)) return true
    return canReachAddressIn(this.#refused, address)
  }

  #ask(
    url: URL,
    addresses: readonly LookupAddress[],
    signal: AbortSignal,
    form: Readonly<Record<string, string>> | undefined,
  ): Promise<IncomingMessage> {
    const { caPem } = this.#rules
    const lookUp: LookupFunction = (_host, options, callback) => {
      const [first] = addresses
      if (options.all === true) callback(null, [...addresses])
      else callback(null, first?.address ?? '', first?.family ?? 0)
    }
    const request = url.protocol === 'https:' ? requestTls : requestPlain
    return new Promise((resolve, reject) => {
      request(url, {
        agent: false,
        // @guard signer-keys--rebinding
        lookup: lookUp,
        // @guard signer-keys--time
        signal,
        method: form === undefined ? 'GET' : 'POST',
        headers: {
          accept: [...TYPES].join(', '),
          'accept-encoding': 'identity',
          ...(form === undefined ? {} : { 'content-type': 'application/x-www-form-urlencoded' }),
        },
        ...(caPem === '' ? {} : { ca: [...getCACertificates('default'), caPem] }),
      })
        .on('response', resolve)
        .on('error', reject)
        .end(form === undefined ? undefined : new URLSearchParams(form).toString())
    })
  }

  async #read(response: IncomingMessage): Promise<string> {
    try {
      const { statusCode, headers } = response
      // @guard signer-keys--redirect
      if (statusCode !== 200) throw new KeyFetchError(`response status ${statusCode}`)
      const type = headers['content-type']?.split(';', 1)[0]?.trim().toLowerCase() ?? ''
      if (!TYPES.has(type)) throw new KeyFetchError('response is not JSON')
      const chunks: Buffer[] = []
      let length = 0
      for await (const chunk of response as AsyncIterable<Buffer>) {
        length += chunk.length
        // @guard signer-keys--size
        if (length > this.#limits.keySetBytesMax) throw new KeyFetchError('response too large')
        chunks.push(chunk)
      }
      return Buffer.concat(chunks).toString('utf8')
    } finally {
      response.destroy()
    }
  }
}

function refusedAddress(): KeyFetchError {
  return new KeyFetchError('it resolves to an address that is not allowed')
}

function blockListOf(networks: readonly string[]): BlockList {
  const list = new BlockList()
  for (const network of networks) {
    const [address = '', prefix = ''] = network.split('/')
    list.addSubnet(address, Number(prefix), isIP(address) === 6 ? 'ipv6' : 'ipv4')
  }
  return list
}

/**
 * Waits until the work or its time limit ends. Only the waiting ends, because a DNS lookup cannot
 * be canceled.
 */
function untilAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => {
      reject(new KeyFetchError('timed out'))
    }
    signal.addEventListener('abort', onAbort, { once: true })
    work.then(resolve, reject).finally(() => {
      signal.removeEventListener('abort', onAbort)
    })
  })
}

import { generateKeyPairSync, type KeyObject } from 'node:crypto'
import { createServer, type Server } from 'node:https'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type JWTHeaderParameters, type JWTPayload, SignJWT } from 'jose'
import {
  type CertificateWithKey,
  issueLeaf,
  validityStartingAt,
} from '../../src/pki/authority/authority.ts'
import { newCa } from './authorities.ts'

const DAY_MS = 24 * 60 * 60_000
const MINUTE_S = 60

export interface ProviderKey {
  readonly kid: string
  readonly algorithm: string
  readonly privateKey: KeyObject
  readonly publicKey: KeyObject
}

export function rsaKey(kid: string, modulusLength = 2048): ProviderKey {
  return { kid, algorithm: 'RS256', ...generateKeyPairSync('rsa', { modulusLength }) }
}

export function ecKey(kid: string): ProviderKey {
  return { kid, algorithm: 'ES256', ...generateKeyPairSync('ec', { namedCurve: 'P-256' }) }
}

export function edKey(kid: string): ProviderKey {
  return { kid, algorithm: 'EdDSA', ...generateKeyPairSync('ed25519') }
}

export function jwkOf({ kid, publicKey }: ProviderKey): Record<string, unknown> {
  return { ...publicKey.export({ format: 'jwk' }), kid, use: 'sig' }
}

/** Parts of a token that a test sets instead of the default values. */
export interface TokenWish {
  readonly claims?: Readonly<Record<string, unknown>>
  readonly header?: Readonly<Record<string, unknown>>
  readonly key?: ProviderKey
  /** UTC ms. */
  readonly nowMs?: number
}

/** An identity provider: its keys, and tokens signed with them for any user that a test names. */
export class TestProvider {
  readonly issuer: string
  readonly audience: string
  key: ProviderKey
  readonly #nowMs: () => number

  constructor(
    issuer: string,
    audience: string,
    nowMs: () => number = Date.now,
    key: ProviderKey = ecKey('first'),
  ) {
    this.issuer = issuer
    this.audience = audience
    this.#nowMs = nowMs
    this.key = key
  }

  /**
   * The token is valid for ten minutes from `nowMs`, unless the claims set another time; a claim
   * that is undefined is omitted.
   */
  async token(subject: string, wish: TokenWish = {}): Promise<string> {
    const key = wish.key ?? this.key
    const issuedAt = Math.floor((wish.nowMs ?? this.#nowMs()) / 1000)
    const claims = {
      iss: this.issuer,
      aud: this.audience,
      sub: subject,
      iat: issuedAt,
      exp: issuedAt + 10 * MINUTE_S,
      ...wish.claims,
    }
    return await new SignJWT(claims as JWTPayload)
      .setProtectedHeader({
        alg: key.algorithm,
        kid: key.kid,
        typ: 'JWT',
        ...wish.header,
      } as JWTHeaderParameters)
      .sign(key.privateKey)
  }
}

type Answering = (request: IncomingMessage, response: ServerResponse) => void

/**
 * The endpoint that publishes a provider's keys: a real HTTPS server on a separate port, whose CA
 * only configured clients trust.
 */
export class KeyServer {
  readonly #server: Server
  readonly caPem: string
  requests = 0
  /** The key set of the provider, unless `answer` returns something else. */
  keys: readonly unknown[]
  answer: Answering = (_request, response) => {
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify({ keys: this.keys }))
  }

  private constructor(keys: readonly unknown[], own: CertificateWithKey, caPem: string) {
    this.keys = keys
    this.caPem = caPem
    const { certificatePem: cert, privateKeyPem: key } = own
    this.#server = createServer({ cert, key }, (request, response) => {
      this.requests += 1
      this.answer(request, response)
    })
  }

  static async open(
    keys: readonly unknown[],
    hosts: readonly string[] = ['localhost'],
  ): Promise<KeyServer> {
    const nowMs = Date.now()
    const root = await newCa('root of a provider', nowMs)
    const own = await issueLeaf({
      issuer: root,
      commonName: 'provider',
      uris: [],
      hosts: [...hosts],
      usages: ['server'],
      validity: validityStartingAt(nowMs, DAY_MS),
    })
    const server = new KeyServer(keys, own, root.certificatePem)
    await new Promise<void>((resolve) => {
      server.#server.listen(0, '127.0.0.1', resolve)
    })
    return server
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  get url(): string {
    return `https://localhost:${this.port}/keys`
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise((resolve) => this.#server.close(resolve))
  }
}

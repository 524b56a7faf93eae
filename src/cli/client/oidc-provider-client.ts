import * as oauth from 'oauth4webapi'

import { CommandFailure, EXIT_FAILED } from '../../controller/command-failure.ts'
import { printableLine } from '../../lib/text/terminal-text.ts'
import type { HttpsServerTarget } from './verifying-https-agent.ts'
import { sendHttpsRequest, HttpsFault, type HttpsResponse } from './https-request.ts'
import { isSessionToken } from './session-token-text.ts'

/** Client id of OpenZiti's public OIDC client for tools. */
const CLIENT_ID = 'native'
const SCOPE = 'openid offline_access'
const ANSWER_BYTES_MAX = 256 * 1024
const TIMEOUT_MS = 15_000
/**
 * Allowed error of the controller's time, which is estimated from the `date` header of a response;
 * this header has whole seconds.
 */
const CLOCK_TOLERANCE_SECONDS = 30
/** Maximum lifetime of a token that is stored, even if the controller grants a longer one. */
const TOKEN_MS_MAX = 24 * 60 * 60_000
/** Maximum time to wait for the user's confirmation, even if the controller waits longer. */
const DEVICE_MS_MAX = 60 * 60_000
/** Minimum time between two polls, even if the controller allows a shorter one. */
const DEVICE_POLL_MS_MIN = 1000

/** Tokens of an OIDC session. */
export interface GrantedTokens {
  readonly accessToken: string
  readonly refreshToken: string
  /** Expiry of the access token by the clock of this host, UTC ms. */
  readonly expiresAtMs: number
  /** Name of the identity; '' if the token response does not contain it. */
  readonly name: string
}

/** A log-in by authorization code that has begun and has not received its code yet. */
export interface StartedLogIn {
  /** The address to open in a browser. It contains no secret. */
  readonly url: string
  readonly redirectUri: string
  readonly state: string
  readonly nonce: string
  /** A secret. */
  readonly verifier: string
}

/** A log-in that the user confirms in a browser on another device (RFC 8628). */
export interface DeviceLogIn {
  /** A secret. */
  readonly deviceCode: string
  readonly userCode: string
  readonly verificationUri: string
  /** The verification address including the user code; null: the controller sends none. */
  readonly verificationUriComplete: string | null
  readonly expiresInMs: number
  readonly intervalMs: number
}

/**
 * A controller refused a request as an OpenID provider, or sent an unusable response. `code` is an
 * error code of RFC 6749, RFC 8628 or the API, `NOT_AN_OIDC_PROVIDER`, or '' if there is none.
 */
export class OidcProviderRefusal extends CommandFailure {
  readonly code: string
  /** True if another controller, or the same controller later, may accept the request. */
  readonly isPassing: boolean

  constructor(code: string, message: string, isPassing: boolean, cause?: unknown) {
    super(EXIT_FAILED, message, cause)
    this.code = code
    this.isPassing = isPassing
  }
}

/**
 * One controller as an OpenID provider. Each address of a controller is a separate issuer, so a
 * log-in is completed at the controller where it started; every issuer accepts a refresh token. The
 * certified library `oauth4webapi` implements the OAuth protocol, and uses the same HTTPS client as
 * all other commands.
 */
export class OidcProviderClient {
  readonly controller: string
  readonly #peer: HttpsServerTarget
  readonly #server: oauth.AuthorizationServer
  readonly #client: oauth.Client

  private constructor(
    controller: string,
    peer: HttpsServerTarget,
    server: oauth.AuthorizationServer,
    skewSeconds: number,
  ) {
    this.controller = controller
    this.#peer = peer
    this.#server = server
    this.#client = {
      client_id: CLIENT_ID,
      token_endpoint_auth_method: 'none',
      [oauth.clockSkew]: skewSeconds,
      [oauth.clockTolerance]: CLOCK_TOLERANCE_SECONDS,
    }
  }

  /**
   * @param controller origin of the controller.
   * @throws {HttpsFault} when it cannot be reached; {@link OidcProviderRefusal} when the controller
   * is not a provider under that address.
   */
  static async discover(controller: string, peer: HttpsServerTarget): Promise<OidcProviderClient> {
    const issuer = new URL(`${controller}/oidc`)
    let skewSeconds = 0
    const server = await refusalsOf(controller, async () => {
      const answer = await oauth.discoveryRequest(issuer, {
        algorithm: 'oidc',
        [oauth.customFetch]: fetchOf(peer, ({ dateMs }) => {
          if (dateMs !== null) skewSeconds = Math.round((dateMs - Date.now()) / 1000)
        }),
      })
      return await oauth.processDiscoveryResponse(issuer, answer)
    })
    // @guard addresses-of-a-log-in--endpoint
    for (const name of endpoints) ofController(controller, name, server[name])
    return new OidcProviderClient(controller, peer, server, skewSeconds)
  }

  get issuer(): string {
    return this.#server.issuer
  }

  get hasDeviceCodes(): boolean {
    return this.#server.device_authorization_endpoint !== undefined
  }

  /** @param redirectUri URL to which the controller redirects the browser with the code. */
  async begin(redirectUri: string): Promise<StartedLogIn> {
    const verifier = oauth.generateRandomCodeVerifier()
    const [state, nonce] = [oauth.generateRandomState(), oauth.generateRandomNonce()]
    const url = new URL(this.#server.authorization_endpoint ?? `${this.issuer}/authorize`)
    url.search = new URLSearchParams({
      client_id: CLIENT_ID,
      response_type: 'code',
      scope: SCOPE,
      redirect_uri: redirectUri,
      code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
      code_challenge_method: 'S256',
      state,
      nonce,
    }).toString()
    return { url: url.href, redirectUri, state, nonce, verifier }
  }

  /**
   * @param answer the parameters that arrived at the redirect URI; this method verifies state,
   * issuer and nonce in them.
   * @throws {OidcProviderRefusal}
   */
  async redeem(begun: StartedLogIn, answer: URLSearchParams): Promise<GrantedTokens> {
    return await refusalsOf(this.controller, async () => {
      const parameters = oauth.validateAuthResponse(this.#server, this.#client, answer, begun.state)
      const { redirectUri, verifier, nonce: expectedNonce } = begun
      const response = await oauth.authorizationCodeGrantRequest(
        this.#server,
        this.#client,
        oauth.None(),
        parameters,
        redirectUri,
        verifier,
        this.#options(),
      )
      return granted(
        await oauth.processAuthorizationCodeResponse(this.#server, this.#client, response, {
          expectedNonce,
          requireIdToken: true,
        }),
      )
    })
  }

  /** @throws {OidcProviderRefusal} `invalid_grant` when the session has ended. */
  async refresh(refreshToken: string): Promise<GrantedTokens> {
    return await refusalsOf(this.controller, async () => {
      const response = await oauth.refreshTokenGrantRequest(
        this.#server,
        this.#client,
        oauth.None(),
        refreshToken,
        this.#options(),
      )
      const found = await oauth.processRefreshTokenResponse(this.#server, this.#client, response)
      return granted(found, refreshToken)
    })
  }

  /**
   * Ends the session to which the refresh token belongs; any controller of the cluster may have
   * opened the session.
   */
  async revoke(refreshToken: string): Promise<void> {
    await refusalsOf(this.controller, async () => {
      const response = await oauth.revocationRequest(
        this.#server,
        this.#client,
        oauth.None(),
        refreshToken,
        this.#options(),
      )
      await oauth.processRevocationResponse(response)
    })
  }

  async beginDevice(): Promise<DeviceLogIn> {
    return await refusalsOf(this.controller, async () => {
      const response = await oauth.deviceAuthorizationRequest(
        this.#server,
        this.#client,
        oauth.None(),
        { scope: SCOPE },
        this.#options(),
      )
      const found = await oauth.processDeviceAuthorizationResponse(
        this.#server,
        this.#client,
        response,
      )
      const { verification_uri: uri, verification_uri_complete: whole } = found
      return {
        deviceCode: found.device_code,
        userCode: found.user_code,
        // @guard addresses-of-a-log-in--shown
        verificationUri: ofController(this.controller, 'verification_uri', uri),
        verificationUriComplete:
          whole === undefined
            ? null
            : ofController(this.controller, 'verification_uri_complete', whole),
        expiresInMs: Math.min(found.expires_in * 1000, DEVICE_MS_MAX),
        intervalMs: Math.max((found.interval ?? 5) * 1000, DEVICE_POLL_MS_MIN),
      }
    })
  }

  /**
   * @throws {OidcProviderRefusal} `authorization_pending` or `slow_down` as long as the user has
   * not confirmed the log-in.
   */
  async pollDevice({ deviceCode }: DeviceLogIn): Promise<GrantedTokens> {
    return await refusalsOf(this.controller, async () => {
      const response = await oauth.deviceCodeGrantRequest(
        this.#server,
        this.#client,
        oauth.None(),
        deviceCode,
        this.#options(),
      )
      return granted(await oauth.processDeviceCodeResponse(this.#server, this.#client, response))
    })
  }

  /** Sends one log-in step as JSON, without following redirects. */
  step(
    url: string,
    body?: Readonly<Record<string, unknown>>,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<HttpsResponse> {
    const method = body === undefined ? 'GET' : 'POST'
    const request = { ...this.#peer, url, method, headers, timeoutMs: TIMEOUT_MS } as const
    return sendHttpsRequest(body === undefined ? request : { ...request, body }, ANSWER_BYTES_MAX)
  }

  #options(): { readonly [oauth.customFetch]: ReturnType<typeof fetchOf> } {
    return { [oauth.customFetch]: fetchOf(this.#peer) }
  }
}

/** Metadata members with the addresses to which a browser or this program sends its requests. */
const endpoints = [
  'authorization_endpoint',
  'token_endpoint',
  'device_authorization_endpoint',
  'revocation_endpoint',
] as const

/**
 * Requires that an address from the controller has the controller's origin with https, because a
 * browser opens the address, or this program sends a secret to it. Another scheme could start
 * another program, and another host would be trusted instead of the host that the user named.
 * @throws {OidcProviderRefusal}
 */
function ofController<T extends string | undefined>(controller: string, name: string, url: T): T {
  // @guard addresses-of-a-log-in--origin
  if (url === undefined || URL.parse(url)?.origin === controller) return url
  const found = JSON.stringify(printableLine(url, 100))
  const text = `its ${name} is ${found}, an address of another host; nothing was opened or sent there`
  throw new OidcProviderRefusal('', `${controller}: ${text}`, false)
}

function granted(found: oauth.TokenEndpointResponse, refreshToken?: string): GrantedTokens {
  const held = found.refresh_token ?? refreshToken
  if (!isSessionToken(held) || !isSessionToken(found.access_token)) {
    throw new OidcProviderRefusal(
      '',
      'the answer to the log-in has no tokens that can be used',
      false,
    )
  }
  const name = oauth.getValidatedIdTokenClaims(found)?.['name']
  return {
    accessToken: found.access_token,
    refreshToken: held,
    expiresAtMs: Date.now() + Math.min((found.expires_in ?? 0) * 1000, TOKEN_MS_MAX),
    name: typeof name === 'string' ? name : '',
  }
}

type FetchOptions = oauth.CustomFetchOptions<string, URLSearchParams | string | null | undefined>

/** A `fetch` function for the library. It verifies the controller before it sends any byte. */
function fetchOf(
  peer: HttpsServerTarget,
  onAnswer: (answer: HttpsResponse) => void = () => undefined,
): (url: string, options: FetchOptions) => Promise<Response> {
  return async (url, { method, headers, body }) => {
    const text = body === undefined || body === null ? {} : { text: body.toString() }
    const answer = await sendHttpsRequest(
      {
        ...peer,
        url,
        method: method === 'POST' ? 'POST' : 'GET',
        headers,
        ...text,
        timeoutMs: TIMEOUT_MS,
      },
      ANSWER_BYTES_MAX,
    )
    onAnswer(answer)
    const type = answer.headers['content-type']
    return new Response(answer.text, {
      status: answer.status,
      headers: type === undefined ? {} : { 'content-type': type },
    })
  }
}

/**
 * Error code for a server that is not an OpenID provider. OAuth defines no code for this case.
 */
export const NOT_AN_OIDC_PROVIDER = 'not_a_provider'

const NO_PROVIDER =
  'it is no OpenID provider under this address; use one of its advertised addresses'

/**
 * Runs a call of the library and converts its errors.
 * @throws {OidcProviderRefusal} instead of the library's errors; an {@link HttpsFault} is thrown
 * unchanged.
 */
async function refusalsOf<T>(controller: string, run: () => Promise<T>): Promise<T> {
  try {
    return await run()
  } catch (error) {
    if (error instanceof HttpsFault || error instanceof CommandFailure) throw error
    if (error instanceof oauth.ResponseBodyError) {
      const { error: code, error_description: description, status } = error
      const isPassing = status === 429 || status >= 500
      throw new OidcProviderRefusal(
        code,
        `${controller}: ${described(code, description)}`,
        isPassing,
      )
    }
    if (error instanceof oauth.AuthorizationResponseError) {
      const { error: code, error_description: description } = error
      throw new OidcProviderRefusal(code, `${controller}: ${described(code, description)}`, false)
    }
    // The library's message describes the fault. Its cause is omitted, because it could contain a
    // token.
    const { cause, message } = error as Error
    const isStatus = cause instanceof Response && cause.status >= 500
    if (cause instanceof Response && cause.status === 404) {
      throw new OidcProviderRefusal(NOT_AN_OIDC_PROVIDER, `${controller}: ${NO_PROVIDER}`, false)
    }
    const text = `unexpected answer to a log-in (${message})`
    throw new OidcProviderRefusal('', `${controller}: ${text}`, isStatus)
  }
}

function described(code: string, description: string | undefined): string {
  const text = description === undefined ? code : `${code}: ${description}`
  return printableLine(text, 300)
}

import { hostname, release } from 'node:os'

import { CommandFailure } from '../../controller/command-failure.ts'
import { programVersion } from '../../controller/version.ts'
import type { CachedResolver } from '../../lib/runtime/cached-resolver.ts'
import {
  type ApiLogInResult,
  type ControllerApi,
  objectOrEmpty,
  LogInRefusedError,
  readRecords,
  SessionEndedError,
  readTextField,
} from '../../tunnel/controller-api.ts'
import { ApiClient } from './api-client.ts'
import { ApiRefusal } from './api-refusal.ts'

const CLIENT_API = '/edge/client/v1'
const LOG_IN_AGAIN = 'the tunnel does so by itself'

interface CertificateApiOptions {
  /** Origins of controllers, `https://host:port`. */
  readonly origins: readonly string[]
  readonly caPem: string
  readonly certificatePem: string
  readonly privateKeyPem: string
  readonly names?: CachedResolver
}

/** API client that logs in to the controllers of a cluster with an identity's certificate. */
export class CertificateApiClient implements ControllerApi {
  /**
   * Controller addresses from the identity file. Once the cluster has listed its controllers, these
   * addresses are tried after the listed ones, except the address that is in use.
   */
  readonly #named: readonly string[]
  readonly #options: CertificateApiOptions
  #client: ApiClient
  #token: string | null = null

  constructor(options: CertificateApiOptions) {
    this.#named = options.origins
    this.#options = options
    this.#client = this.#clientFor(options.certificatePem, options.origins)
  }

  async logIn(): Promise<ApiLogInResult> {
    this.#token = null
    const body = {
      // Requests all config types; otherwise the services in this session would have no config
      // data.
      configTypes: ['all'],
      sdkInfo: { type: 'flotilla tunnel', version: programVersion(), appId: 'flotilla' },
      envInfo: {
        os: process.platform,
        arch: process.arch,
        osRelease: release(),
        hostname: hostname(),
      },
    }
    try {
      const path = '/authenticate?method=cert'
      const { data } = await this.#client.ask({
        method: 'POST',
        path,
        api: CLIENT_API,
        body,
        showsSession: false,
      })
      const session = objectOrEmpty(data)
      const identity = objectOrEmpty(session['identity'])
      const lacks = readRecords(session['authQueries']).map((one) => readTextField(one, 'typeId'))
      this.#token = readTextField(session, 'token')
      if (this.#token === '') throw new Error('the answer to the log-in is no session')
      return {
        token: this.#token,
        identityId: readTextField(session, 'identityId'),
        identityName: readTextField(identity, 'name'),
        lacks:
          lacks.length === 0
            ? null
            : `the identity must show more than its certificate (${lacks.join(', ')}), which no program can: give it an authentication policy without second factors`,
      }
    } catch (error) {
      if (!(error instanceof ApiRefusal) || error.code !== 'INVALID_AUTH') throw error
      throw new LogInRefusedError(
        'log-in refused: the certificate is not one of an enabled identity, or its authentication policy does not allow it; enroll the identity again, or have it enabled',
        { cause: error },
      )
    }
  }

  async get(path: string): Promise<unknown> {
    return await this.#ask('GET', path)
  }

  async post(path: string, body: object): Promise<unknown> {
    return await this.#ask('POST', path, body)
  }

  async logOut(timeoutMs: number): Promise<void> {
    if (this.#token === null) return
    const request = { method: 'DELETE', path: '/current-api-session', timeoutMs } as const
    const { promise, reject } = Promise.withResolvers<never>()
    const timer = setTimeout(() => reject(new Error('no answer in time')), timeoutMs)
    try {
      await Promise.race([promise, this.#client.ask({ ...request, api: CLIENT_API })])
    } finally {
      clearTimeout(timer)
    }
  }

  follow(origins: readonly string[]): void {
    this.#client.follow([...origins, ...this.#named])
  }

  useCertificate(certificatePem: string): void {
    // A new client is needed, because open connections still present the previous certificate.
    this.#client = this.#clientFor(certificatePem, this.#client.controllers)
  }

  #clientFor(certificatePem: string, controllers: readonly string[]): ApiClient {
    const { caPem, privateKeyPem, names } = this.#options
    return new ApiClient({
      controllers,
      caPem,
      ...(names === undefined ? {} : { names }),
      token: () => this.#token,
      client: { certificatePem, privateKeyPem },
      logInAgain: LOG_IN_AGAIN,
    })
  }

  async #ask(method: 'GET' | 'POST', path: string, body?: object): Promise<unknown> {
    try {
      const request = { method, path, api: CLIENT_API }
      const { data } = await this.#client.ask(body === undefined ? request : { ...request, body })
      return data
    } catch (error) {
      if (error instanceof ApiRefusal && error.status === 401) {
        throw new SessionEndedError(error.message, { cause: error })
      }
      if (error instanceof CommandFailure) throw new Error(error.message, { cause: error })
      throw error
    }
  }
}

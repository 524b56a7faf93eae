import type { FastifyInstance } from 'fastify'
import { afterAll } from 'vitest'

import type { ApiLimits } from '../../../src/api/limits.ts'
import type { ApiDeps } from '../../../src/api/api-deps.ts'
import type { CertificateWithKey } from '../../../src/pki/authority/authority.ts'
import { parseCertificates } from '../../../src/pki/certificate.ts'
import type { MemberLeaf } from '../../../src/pki/jwt-signer.ts'
import { newShortId } from '../../../src/lib/random.ts'
import { buildApi } from '../../api/support/build-api.ts'
import { CallerOf, client, management } from '../../api/support/caller.ts'
import { controllerForFile, type ForFile } from '../../api/support/for-file.ts'
import { type Authenticator, turnOnMfa } from '../../api/support/mfa.ts'
import { made } from '../../api/support/network.ts'
import { OidcClient, type OidcDoor } from '../../api/support/oidc.ts'
import { raiseLevel } from '../../api/support/raise-level.ts'
import { clientKey, TlsListener } from '../../api/support/tls.ts'
import { type FormerLeaf, memberLeaf, signerOf } from '../../support/member-leaf.ts'

export const password = 'a long enough password'
export const ownIdentity = `${client}/current-identity`

export interface Person {
  readonly id: string
  readonly username: string
}

/** Two controllers of one cluster, each with its own key and memory, which share the state. */
export interface TwoControllers extends ForFile {
  readonly first: FastifyInstance
  readonly second: FastifyInstance
  /** Keys of the first and the second controller; a test may remove one. */
  readonly members: (CertificateWithKey & MemberLeaf)[]
  /** Keys of the controllers that the first controller considers removed. */
  readonly former: FormerLeaf[]
  newPerson(): Promise<Person>
  /** Creates a person with a second factor. */
  newPersonWithCodes(): Promise<Person & { readonly app: Authenticator }>
  /** Creates a client that uses the first controller. */
  newClient(): OidcClient
  /** Creates a client that continues the same flow at the other controller. */
  newClientOf(app: FastifyInstance): OidcClient
}

export async function twoControllers(limits: Partial<ApiLimits> = {}): Promise<TwoControllers> {
  const [own, other] = await Promise.all([memberLeaf('ctrl1'), memberLeaf('ctrl2')])
  const members = [own, other]
  let nowMs = (): number => 0
  const former: FormerLeaf[] = []
  const given: Partial<ApiDeps> = { jwt: signerOf(own, members, () => nowMs(), former) }
  const file = await controllerForFile(limits, undefined, given)
  const { controller, root } = file
  nowMs = () => controller.clock.nowMs()
  await raiseLevel(controller)
  const second = buildApi({ ...controller.parts, jwt: signerOf(other, members, () => nowMs()) })
  await second.ready()
  afterAll(() => second.close())
  const newPerson = async (): Promise<Person> => {
    const username = `person ${newShortId()}`
    const body = { name: username, type: 'User', isAdmin: false }
    const id = await made(root, `${management}/identities`, body)
    const credential = { method: 'updb', identityId: id, username, password }
    await made(root, `${management}/authenticators`, credential)
    return { id, username }
  }
  return {
    ...file,
    first: controller.app,
    second,
    members,
    former,
    newPerson,
    newPersonWithCodes: async () => {
      const person = await newPerson()
      const caller = new CallerOf(controller)
      await caller.logIn({ username: person.username, password }, client)
      return { ...person, app: await turnOnMfa(controller, caller) }
    },
    newClient: () => new OidcClient(controller),
    newClientOf: (app) => new OidcClient({ app }),
  }
}

export interface Holder {
  readonly id: string
  readonly key: CertificateWithKey
}

/** The listener of the first controller, and people who log in there with certificates. */
export class Certificates {
  readonly #file: ForFile
  readonly #listener: TlsListener

  private constructor(file: ForFile, listener: TlsListener) {
    this.#file = file
    this.#listener = listener
  }

  static async open(file: ForFile): Promise<Certificates> {
    const listener = await TlsListener.open(file.controller)
    afterAll(() => listener.close())
    return new Certificates(file, listener)
  }

  async newHolder(): Promise<Holder> {
    const { controller, root } = this.#file
    const name = `holder ${newShortId()}`
    const body = { name, type: 'Device', isAdmin: false }
    const id = await made(root, `${management}/identities`, body)
    const key = await clientKey(controller.authorities.issuing, id, controller.clock.nowMs())
    const [{ pem: certPem }] = parseCertificates(key.certificatePem)
    const credential = { method: 'cert', identityId: id, certPem }
    await made(root, `${management}/authenticators`, credential)
    return { id, key }
  }

  /** Connections with this client certificate, or without any. */
  door(by: CertificateWithKey | null): OidcDoor {
    return {
      app: {
        inject: async ({ method, url, headers, payload }) => {
          const body = payload === undefined ? {} : { body: payload }
          const reply = await this.#listener.call({ method, path: url, by, headers, ...body })
          return { statusCode: reply.status, headers: reply.headers, payload: reply.text }
        },
      },
    }
  }
}

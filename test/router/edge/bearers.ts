import { create, toBinary } from '@bufbuild/protobuf'
import { SignJWT } from 'jose'

import {
  ModelAction,
  ModelChangeSetSchema,
  ModelEventSchema,
} from '../../../proto/gen/router_pb.ts'
import { trustedPublicKeys } from '../../../src/fabric/model/public-keys.ts'
import type { JsonObject } from '../../../src/lib/text/canonical-json.ts'
import type { CertificateWithKey } from '../../../src/pki/authority/authority.ts'
import { parseCertificate, parsePrivateKey } from '../../../src/pki/certificate.ts'
import { keyJwtAlgorithm } from '../../../src/pki/jwt-verifier.ts'
import { controllerSpiffeId } from '../../../src/pki/spiffe.ts'
import type { ModelEvent, ModelIdentity } from '../../../src/ports/router-model.ts'
import { changesBody, finished, wholeBody } from '../model/support.ts'
import { trustDomain } from '../support.ts'
import { EdgeBench, type Person } from './support.ts'

export const SECOND_MS = 1000

/** An identity as controllers send it to routers. */
export function modelIdentity(id: string, fields: Partial<ModelIdentity> = {}): ModelEvent {
  const value = {
    id,
    name: id,
    defaultHostingPrecedence: 'default',
    defaultHostingCost: 0,
    serviceHostingPrecedences: {},
    serviceHostingCosts: {},
    disabledAt: null,
    disabledUntil: null,
    appDataJson: '{}',
    serviceConfigs: {},
    ...fields,
  } as const
  return { kind: 'identity', action: 'create', value }
}

export function revocationOf(
  id: string,
  type: 'API_SESSION' | 'IDENTITY' | 'JTI',
  issuedBeforeMs: number,
): ModelEvent {
  const value = { id, type, expiresAt: issuedBeforeMs + 3_600_000, issuedBefore: issuedBeforeMs }
  return { kind: 'revocation', action: 'create', value }
}

/**
 * A router whose data model contains the key of a controller, and clients with tokens that this key
 * signed.
 */
export class BearerBench {
  readonly bench: EdgeBench
  readonly controllerKey: CertificateWithKey

  private constructor(bench: EdgeBench, controllerKey: CertificateWithKey) {
    this.bench = bench
    this.controllerKey = controllerKey
  }

  static async open(lookupTimeout = '200ms'): Promise<BearerBench> {
    const bench = await EdgeBench.open({ options: `, lookupApiSessionTimeout: ${lookupTimeout}` })
    const uris = [controllerSpiffeId(trustDomain, 'ctrl1')]
    const made = new BearerBench(bench, await bench.network.leaf('ctrl1', uris, []))
    finished(bench.model.replace(await wholeBody([], 1)))
    made.tellKey(made.controllerKey.certificatePem)
    return made
  }

  tell(...events: readonly ModelEvent[]): void {
    finished(this.bench.model.change(changesBody(events, 1, 0, { isSynthetic: true }), false))
  }

  /** Simulates that the controller with that key has left the cluster: the model loses its key. */
  forgetKey(certificatePem: string): void {
    const keys = trustedPublicKeys({ controllers: [certificatePem], anchors: [] })
    const changes = keys.map((value) =>
      create(ModelEventSchema, {
        action: ModelAction.DELETE,
        isSynthetic: true,
        model: { case: 'publicKey', value },
      }),
    )
    const set = create(ModelChangeSetSchema, { isSynthetic: true, changes })
    finished(this.bench.model.change(toBinary(ModelChangeSetSchema, set), false))
  }

  /**
   * @param isController if true, the key signs tokens; otherwise it belongs to a CA of client
   * certificates.
   */
  tellKey(certificatePem: string, isController = true): void {
    const [controllers, anchors] = isController ? [[certificatePem], []] : [[], [certificatePem]]
    const changes = trustedPublicKeys({ controllers, anchors }).map((value) =>
      create(ModelEventSchema, { isSynthetic: true, model: { case: 'publicKey', value } }),
    )
    const set = create(ModelChangeSetSchema, { isSynthetic: true, changes })
    finished(this.bench.model.change(toBinary(ModelChangeSetSchema, set), false))
  }

  /** A client of an identity in the model. */
  async person(name: string, uris: readonly string[] = []): Promise<Person> {
    this.tell(modelIdentity(name))
    const person = await this.bench.person(name, uris)
    return { ...person, token: await this.token(person) }
  }

  /**
   * An access token of the session, signed as by a controller, with additional or changed claims.
   */
  async token(
    { identityId, sessionId, key }: Pick<Person, 'identityId' | 'sessionId' | 'key'>,
    claims: JsonObject = {},
    signer = this.controllerKey,
  ): Promise<string> {
    const privateKey = parsePrivateKey(signer.privateKeyPem)
    const nowSeconds = Math.floor(Date.now() / SECOND_MS)
    return await new SignJWT({
      iss: 'https://ctrl1.example:1280/oidc',
      sub: identityId,
      aud: ['openziti'],
      iat: nowSeconds,
      nbf: nowSeconds - 60,
      exp: nowSeconds + 1800,
      scopes: ['openid'],
      z_t: 'a',
      z_asid: sessionId,
      z_cfs: [parseCertificate(key.certificatePem).sha1],
      ...claims,
    })
      .setProtectedHeader({
        alg: keyJwtAlgorithm(privateKey),
        kid: parseCertificate(signer.certificatePem).sha1,
        typ: 'JWT',
      })
      .sign(privateKey)
  }
}

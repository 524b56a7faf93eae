import type { Mfa } from '../../entities/kinds/mfa.ts'
import { createdSchema } from '../../entities/schema.ts'
import type { JsonObject } from '../../lib/text/canonical-json.ts'
import { Problem } from '../../lib/problems.ts'
import type { FactorSecrets } from '../../pki/secrets/factor-secrets.ts'
import { totpProvisioningUrl, qrCodePng } from '../../auth/factors/provisioning.ts'
import {
  type FactorCodePurpose,
  type SecondFactors,
  factorNotFoundProblem,
  requiredFactorByPurpose,
} from '../../auth/factors/second-factors.ts'
import { requestOrigin, type RequestContext } from '../http/request-context.ts'
import {
  envelopeResponse,
  responseWithoutEnvelope,
  detailResponse,
  emptyResponse,
  type Reply,
  rfc3339Text,
} from '../http/responses/envelope.ts'
import { type Operation, operationWithBody } from '../http/operation.ts'
import {
  mfaDetailSchema,
  mfaRecoveryCodesSchema,
  mfaCodeSchema,
  mfaQrCodeSchema,
  totpTokenSchema,
} from './mfa-schema.ts'
import { emptyBodySchema } from '../schemas/envelope.ts'
import { requireCaller } from '../sessions/current-identity.ts'
import type { StateView } from '../../ports/state-view.ts'
import type { LinearizableReads } from '../http/linearizable-reads.ts'
import type { OidcTokens } from '../../auth/sessions/oidc-tokens.ts'
import type { PostureService } from '../../ports/posture.ts'

interface OwnMfaDeps {
  readonly state: StateView
  readonly reads: LinearizableReads
  readonly posture: PostureService
  readonly secondFactors: SecondFactors
  readonly oidcTokens: OidcTokens
}

const path = '/current-identity/mfa'
const codeHeader = {
  name: 'mfa-validation-code',
  description: 'TOTP code or, where allowed, recovery code',
} as const
const code = { schema: mfaCodeSchema, isRequired: true } as const
/** Maximum bytes of a body that contains one code. */
const CODE_BODY_BYTES_MAX = 4096

/** Operations on the caller's own MFA: enroll, show, use and remove it. */
export function ownMfaOperations(deps: OwnMfaDeps): Operation[] {
  return [...enrollmentOperations(deps), ...codeOperations(deps)]
}

const common = { apis: ['client', 'management'], tag: 'MFA', success: 200 } as const

function enrollmentOperations(deps: OwnMfaDeps): Operation[] {
  const own = new OwnMfa(deps)
  return [
    {
      ...common,
      operationId: 'detailMfa',
      summary: 'Show the MFA enrollment of the current identity',
      permission: 'partial',
      method: 'GET',
      path,
      response: { kind: 'detail', schema: mfaDetailSchema },
      refusals: [404],
      handle: (call) => own.detail(call),
    },
    {
      ...common,
      operationId: 'enrollMfa',
      summary: 'Start an MFA enrollment; replaces an unverified one',
      permission: 'partial',
      method: 'POST',
      path,
      success: 201,
      response: { kind: 'detail', schema: { name: 'createResult', schema: createdSchema } },
      refusals: [409],
      handle: (call) => own.begin(call),
    },
    operationWithBody({
      ...common,
      operationId: 'verifyMfa',
      summary: 'Verify the MFA enrollment with a first TOTP code',
      permission: 'partial',
      method: 'POST',
      path: `${path}/verify`,
      body: code,
      bodyBytesMax: CODE_BODY_BYTES_MAX,
      response: { kind: 'detail', schema: emptyBodySchema },
      refusals: [404],
      handle: (call, { code }) => own.use(call, 'verify', code),
    }),
    {
      ...common,
      operationId: 'deleteMfa',
      summary: 'Remove MFA of the current identity; needs a code once verified',
      permission: 'session',
      method: 'DELETE',
      path,
      headers: [codeHeader],
      response: { kind: 'detail', schema: emptyBodySchema },
      refusals: [404],
      handle: (call) => own.use(call, 'end', call.headers[codeHeader.name] ?? ''),
    },
    {
      ...common,
      operationId: 'detailMfaQrCode',
      summary: 'Get the QR code of an unverified MFA enrollment',
      permission: 'partial',
      method: 'GET',
      path: `${path}/qr-code`,
      response: {
        kind: 'bare',
        schema: mfaQrCodeSchema,
        types: ['image/png'],
        ignoresAccept: true,
      },
      refusals: [404],
      handle: (call) => own.qrCode(call),
    },
  ]
}

function codeOperations(deps: OwnMfaDeps): Operation[] {
  const own = new OwnMfa(deps)
  const recoveryCodes = {
    ...common,
    permission: 'session',
    path: `${path}/recovery-codes`,
  } as const
  return [
    operationWithBody({
      ...recoveryCodes,
      operationId: 'detailMfaRecoveryCodes',
      summary: 'Show the remaining recovery codes; needs a TOTP code',
      method: 'GET',
      headers: [codeHeader],
      body: { schema: mfaCodeSchema, isRequired: false },
      bodyBytesMax: CODE_BODY_BYTES_MAX,
      response: { kind: 'detail', schema: mfaRecoveryCodesSchema },
      refusals: [404],
      handle: (call, { code }) => own.viewCodes(call, code),
    }),
    operationWithBody({
      ...recoveryCodes,
      operationId: 'createMfaRecoveryCodes',
      summary: 'Regenerate the recovery codes',
      method: 'POST',
      body: code,
      bodyBytesMax: CODE_BODY_BYTES_MAX,
      response: { kind: 'detail', schema: emptyBodySchema },
      refusals: [404],
      handle: (call, { code }) => own.use(call, 'renew', code),
    }),
    operationWithBody({
      ...common,
      operationId: 'authenticateMfa',
      summary: 'Complete the current API session with a TOTP or recovery code',
      permission: 'partial',
      tag: 'authentication',
      method: 'POST',
      path: '/authenticate/mfa',
      body: code,
      bodyBytesMax: CODE_BODY_BYTES_MAX,
      response: { kind: 'detail', schema: emptyBodySchema },
      refusals: [409],
      handle: (call, { code }) => own.use(call, 'pass', code),
    }),
    operationWithBody({
      ...common,
      operationId: 'createTotpToken',
      summary: 'Exchange a TOTP code for a token that edge routers accept (OIDC sessions only)',
      permission: 'session',
      tag: 'currentApiSession',
      method: 'POST',
      path: '/current-api-session/totp-token',
      body: code,
      bodyBytesMax: CODE_BODY_BYTES_MAX,
      response: { kind: 'detail', schema: totpTokenSchema },
      refusals: [404, 409],
      handle: (call, { code }) => own.totpToken(call, code),
    }),
  ]
}

class OwnMfa {
  readonly #deps: OwnMfaDeps
  readonly #factors: SecondFactors
  readonly #posture: OwnMfaDeps['posture']

  constructor(deps: OwnMfaDeps) {
    this.#deps = deps
    this.#factors = deps.secondFactors
    this.#posture = deps.posture
  }

  async begin(call: RequestContext): Promise<Reply> {
    const { identity } = requireCaller(call)
    await this.#factors.begin(requestOrigin(call), identity.id)
    return envelopeResponse(201, { _links: { self: { href: `.${path}` } }, id: identity.id })
  }

  async detail(call: RequestContext): Promise<Reply> {
    const mfa = await this.#latest(call)
    if (mfa.isVerified) {
      return detailResponse({ ...viewOf(mfa), isVerified: true })
    }
    const factor = await this.#factors.vault.open(mfa)
    return detailResponse({
      ...viewOf(mfa),
      isVerified: false,
      provisioningUrl: this.#urlOf(call, factor),
      recoveryCodes: factor.recoveryCodes,
    })
  }

  async qrCode(call: RequestContext): Promise<Reply> {
    const mfa = await this.#latest(call)
    if (mfa.isVerified) throw factorNotFoundProblem()
    const factor = await this.#factors.vault.open(mfa)
    return responseWithoutEnvelope(qrCodePng(this.#urlOf(call, factor)), 'image/png')
  }

  async use(call: RequestContext, purpose: FactorCodePurpose, given: string): Promise<Reply> {
    const { identity } = requireCaller(call)
    const { address } = call.credentials
    const proof = { purpose, code: given, address }
    await this.#factors.prove(
      requestOrigin(call),
      identity.id,
      proof,
      requiredFactorByPurpose[purpose],
    )
    if (purpose !== 'view' && purpose !== 'renew') await this.#posture.factorMoved(identity.id)
    return emptyResponse()
  }

  /** @throws {Problem} INVALID_BACKING_TOKEN_TYPE in a session that was not opened with OIDC. */
  async totpToken(call: RequestContext, given: string): Promise<Reply> {
    const caller = requireCaller(call)
    if (caller.kind !== 'session' || caller.accessToken === undefined) {
      throw new Problem('INVALID_BACKING_TOKEN_TYPE')
    }
    await this.use(call, 'token', given)
    const { token, issuedAtMs } = await this.#deps.oidcTokens.signTotp(caller.accessToken)
    return detailResponse({ token, issuedAt: rfc3339Text(issuedAtMs) })
  }

  /**
   * The unused recovery codes. The request proves the factor with the code in its body or, without
   * one, in its header.
   */
  async viewCodes(call: RequestContext, code = ''): Promise<Reply> {
    await this.use(call, 'view', code || (call.headers[codeHeader.name] ?? ''))
    const mfa = await this.#latest(call)
    const { recoveryCodes } = await this.#factors.vault.open(mfa)
    const left = recoveryCodes.filter((_code, at) => !mfa.usedCodes.includes(at))
    return detailResponse({ ...viewOf(mfa, '/recovery-codes'), recoveryCodes: left })
  }

  /**
   * The caller's MFA record.
   * @throws {Problem} NOT_FOUND if the caller has no MFA on any controller.
   */
  async #latest(call: RequestContext): Promise<Mfa> {
    const { identity } = requireCaller(call)
    const found = await this.#deps.reads.latest(() => this.#factors.find(identity.id))
    call.index = this.#deps.state.appliedIndex
    if (found === undefined) throw factorNotFoundProblem()
    return found
  }

  #urlOf(call: RequestContext, { secret }: FactorSecrets): string {
    return totpProvisioningUrl(secret, requireCaller(call).identity.name)
  }
}

function viewOf(mfa: Mfa, below = ''): JsonObject {
  const more = mfa.isVerified
    ? { 'recovery-codes': { href: `.${path}/recovery-codes` } }
    : { verify: { href: `.${path}/verify` }, qr: { href: `.${path}/qr-code` } }
  return {
    _links: {
      self: { href: `.${path}${below}` },
      'current-identity': { href: './current-identity' },
      ...more,
    },
    id: mfa.id,
    createdAt: rfc3339Text(mfa.createdAt),
    updatedAt: rfc3339Text(mfa.updatedAt),
    tags: {},
  }
}

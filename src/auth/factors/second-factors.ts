import { create, type MessageInitShape, toBinary } from '@bufbuild/protobuf'
import { retryWhenRecordsChange } from '../../lib/retry-when-records-change.ts'
import {
  CommandKind,
  MfaAttemptSchema,
  MfaBeginSchema,
  MfaProve_Purpose as Purpose,
  MfaProveSchema,
} from '../../../proto/gen/command_pb.ts'
import type { Mfa } from '../../entities/kinds/mfa.ts'
import { mfaPausedUntilMs } from '../../fsm/apply/authentication.ts'
import { Problem } from '../../lib/problems.ts'
import type { FactorSecrets } from '../../pki/secrets/factor-secrets.ts'
import { equalsInConstantTime, findTotpStep } from '../../pki/secrets/totp.ts'
import { createSystemActor } from '../../ports/actor.ts'
import { FactorEncryption } from './factor-encryption.ts'
import { type Clock, proposalNowMs } from '../../lib/clock.ts'
import type { StateView } from '../../ports/state-view.ts'
import type { LatestReads } from '../../ports/latest-reads.ts'
import type { TokenKeys } from '../../ports/token-keys.ts'
import type { Proposer } from '../../ports/proposer.ts'
import type { CommandWriter, WriteOrigin } from '../../ports/writer.ts'
import { writeOriginForActor } from '../principal/principal.ts'

type Proof = MessageInitShape<typeof MfaProveSchema>['proof'] & {}

/** A submitted code, with the address of the client that submitted it. */
interface ProofGiven {
  readonly purpose: FactorCodePurpose
  readonly code: string
  readonly address: string
}

/**
 * Purpose of a submitted code: to verify a new factor, to complete a session, to get a TOTP token,
 * to view or renew the recovery codes, or to remove the factor.
 */
export type FactorCodePurpose = 'verify' | 'pass' | 'token' | 'view' | 'renew' | 'end'

/** Accepted codes by purpose: `any` means a time-based code or a recovery code. */
const uses: Readonly<
  Record<FactorCodePurpose, { readonly purpose: Purpose; readonly codes: 'any' | 'timeBased' }>
> = {
  verify: { purpose: Purpose.VERIFY, codes: 'timeBased' },
  pass: { purpose: Purpose.PASS, codes: 'any' },
  // Routers treat the token as a fresh time-based code, so a recovery code is not accepted.
  token: { purpose: Purpose.PASS, codes: 'timeBased' },
  view: { purpose: Purpose.VIEW, codes: 'timeBased' },
  renew: { purpose: Purpose.RENEW, codes: 'any' },
  end: { purpose: Purpose.END, codes: 'any' },
}

interface SecondFactorsDeps {
  readonly state: StateView
  readonly clock: Clock
  readonly reads: LatestReads
  readonly keys: TokenKeys
  readonly proposer: Proposer
  readonly writer: CommandWriter
  readonly limits: { readonly judgementsMax: number }
}

/** Creates, verifies, uses and removes the second factors of callers. */
export class SecondFactors {
  readonly vault: FactorEncryption
  readonly #parts: SecondFactorsDeps

  constructor(parts: SecondFactorsDeps) {
    this.#parts = parts
    this.vault = new FactorEncryption(parts)
  }

  /** The second factor of an identity, with its secrets encrypted; undefined if it has none. */
  find(identityId: string): Mfa | undefined {
    return this.#parts.state.get('mfa', identityId)
  }

  /** @throws {Problem} MFA_EXISTS if the identity already has a verified factor. */
  async begin(origin: WriteOrigin, identityId: string): Promise<void> {
    await retryWhenRecordsChange(origin, this.#parts.limits, async () => {
      const { secretId, factor } = await this.vault.makeNew(identityId)
      const message = create(MfaBeginSchema, { secretId, factor })
      const payload = toBinary(MfaBeginSchema, message)
      // A repeated request replaces the unverified factor with a new secret, so no request
      // id is stored.
      const unkept = writeOriginForActor(origin, origin.actor, { case: 'notKept' })
      await this.#parts.writer.write(unkept, { kind: CommandKind.MFA_BEGIN, payload })
    })
  }

  /**
   * Checks a submitted code and writes its use to the log; the state machine checks again whether
   * the code may be used.
   * @param require throws unless the factor in the latest state may be used.
   * @throws {Problem} MFA_INVALID_TOKEN; SERVER_TOO_MANY_REQUESTS during the pause after too many
   * wrong codes.
   */
  async prove(
    origin: WriteOrigin,
    identityId: string,
    given: ProofGiven,
    require: RequireFactor,
  ): Promise<void> {
    const { reads, limits } = this.#parts
    await reads.reachLatest()
    const { code } = given
    const { purpose, codes } = uses[given.purpose]
    let isCounted = false
    await retryWhenRecordsChange(origin, limits, async () => {
      const found = this.find(identityId)
      require(found)
      // An unverified factor is removed without a code, so this attempt does not count.
      if (given.purpose === 'end' && !found.isVerified) {
        await this.#use(origin, { purpose, secretId: found.secretId })
        return
      }
      if (!isCounted) await this.#reserve(identityId, given.address)
      isCounted = true
      // Reads the factor again: since the first read, this controller has applied the entry that
      // counts the attempt and every entry before it.
      const mfa = this.find(identityId)
      require(mfa)
      const factor = await this.vault.open(mfa)
      const proof = this.#proofBy(mfa, factor, code, codes)
      if (proof === null) throw new Problem('MFA_INVALID_TOKEN')
      const renewed = given.purpose === 'renew' ? await this.vault.renewCodes(factor, mfa) : null
      const { secretId } = mfa
      const use = { purpose, secretId, proof, ...(renewed === null ? {} : { renewed }) }
      await this.#use(origin, use)
    })
  }

  async #use(origin: WriteOrigin, use: MessageInitShape<typeof MfaProveSchema>): Promise<void> {
    const payload = toBinary(MfaProveSchema, create(MfaProveSchema, use))
    // Stores no request id, because the record of the id would contain an unsalted hash of the
    // code.
    const unkept = writeOriginForActor(origin, origin.actor, { case: 'notKept' })
    await this.#parts.writer.write(unkept, { kind: CommandKind.MFA_PROVE, payload })
  }

  /**
   * Proof that a code is correct, for the command; null if the code is neither a current time-based
   * code nor, where `kinds` is `any`, an unused recovery code.
   */
  #proofBy(
    mfa: Mfa,
    { secret, recoveryCodes }: FactorSecrets,
    code: string,
    kinds: 'any' | 'timeBased',
  ): Proof | null {
    if (kinds === 'any') {
      let position = -1
      recoveryCodes.forEach((one, at) => {
        if (equalsInConstantTime(one, code) && !mfa.usedCodes.includes(at)) position = at
      })
      const { codesId } = mfa
      if (position >= 0) return { case: 'recoveryCode', value: { codesId, position } }
    }
    // Also accepts the code of the last used time step: the state machine decides whether the
    // session may repeat it.
    const step = findTotpStep(secret, code, this.#parts.clock.nowMs(), mfa.lastStep - 1)
    return step === null ? null : { case: 'step', value: BigInt(step) }
  }

  /**
   * Counts the attempt in the log, so that the count applies across all controllers. During a pause
   * after too many wrong codes it throws, and writes no entry.
   */
  async #reserve(identityId: string, address: string): Promise<void> {
    const { proposer, state } = this.#parts
    const pauseMs = (): number => {
      const attempts = state.get('mfaAttempts', identityId)
      return mfaPausedUntilMs(attempts) - proposalNowMs(this.#parts)
    }
    if (pauseMs() > 0) throw tooMany(pauseMs())
    const { outcome } = await proposer.propose({
      kind: CommandKind.MFA_ATTEMPT,
      payload: toBinary(MfaAttemptSchema, create(MfaAttemptSchema, { identityId })),
      actor: createSystemActor({ address, identityId }),
    })
    if (outcome.ok) return
    throw outcome.code === 'SERVER_TOO_MANY_REQUESTS'
      ? tooMany(pauseMs())
      : new Problem(outcome.code)
  }
}

type RequireFactor = (found: Mfa | undefined) => asserts found is Mfa

const begun: RequireFactor = (found) => {
  if (found === undefined) throw factorNotFoundProblem()
}
const unverified: RequireFactor = (found) => {
  if (found?.isVerified !== false) throw factorNotFoundProblem()
}
const verified: RequireFactor = (found) => {
  if (found?.isVerified !== true) throw factorNotFoundProblem()
}
const enrolled: RequireFactor = (found) => {
  if (found?.isVerified !== true) throw new Problem('MFA_NOT_ENROLLED')
}

/** For each purpose, the required state of the factor; the state machine checks it again. */
export const requiredFactorByPurpose: Readonly<Record<FactorCodePurpose, RequireFactor>> = {
  verify: unverified,
  pass: enrolled,
  token: enrolled,
  view: verified,
  renew: verified,
  end: begun,
}

export function factorNotFoundProblem(): Problem {
  return new Problem('NOT_FOUND', { detail: 'mfa of the current identity not found' })
}

function tooMany(pauseMs: number): Problem {
  return new Problem('SERVER_TOO_MANY_REQUESTS', {
    detail: 'too many wrong codes were given; wait before the next attempt',
    retryAfterSeconds: Math.max(1, Math.ceil(pauseMs / 1000)),
  })
}

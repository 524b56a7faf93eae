import { texts } from '../../texts.ts'
import type { FieldCondition, Widget } from './form-field.ts'

/** Label and control for a field, instead of those that are derived from its schema. */
export interface FieldHint {
  readonly label?: string
  readonly help?: string
  readonly widget?: Widget
  /** Value in the form of a new record, or a function that returns it. */
  readonly initial?: unknown
  /** Displayed text of each option of a choice. */
  readonly optionTexts?: Readonly<Record<string, string>>
  /** Hints for the fields of an object, or of the items of a list. */
  readonly fields?: Readonly<Record<string, FieldHint>>
  readonly shownIf?: FieldCondition
  /** True: required although the schema does not say so, because another field decides it. */
  readonly isRequired?: boolean
  /** True: the form of an existing record does not show it. */
  readonly isFixed?: boolean
  readonly placeholder?: string
  readonly heading?: string
  readonly isRare?: boolean
}

export const referenceWidget = (kind: string): Widget => ({ is: 'reference', kind })
export const referencesWidget = (kind: string): Widget => ({ is: 'references', kind })
export const rolesHint = (kind: string): FieldHint => ({
  widget: { is: 'roles', kind, isOwn: false },
})
export const attributesHint = (kind: string): FieldHint => ({
  help: texts.wizards.attributesHint,
  widget: { is: 'roles', kind, isOwn: true },
})
export const jsonWidget: Widget = { is: 'json' }
export const tagsHint: FieldHint = { help: texts.form.tags, widget: jsonWidget }

/** How a policy combines its roles. */
export const policySemanticHint: FieldHint = {
  label: texts.form.semantic,
  initial: 'AnyOf',
  optionTexts: texts.form.semantics,
}

/** How a router reaches the host of a terminator. */
export const bindingWidget: Widget = {
  is: 'choice',
  options: ['transport', 'edge', 'tunnel'],
  names: {},
  mayBeNone: false,
}

/** A field of one type of posture check. A type requires its fields, except for MFA. */
function ofPosture(type: string, hint: FieldHint = {}): FieldHint {
  return { ...hint, shownIf: { field: 'typeId', is: [type] }, isRequired: type !== 'MFA' }
}

const hashes: FieldHint = { label: 'Hashes', help: texts.posture.hashes }
export const postureFieldHints: Readonly<Record<string, FieldHint>> = {
  operatingSystems: ofPosture('OS', {
    help: texts.posture.operatingSystems,
    initial: [{ type: 'Linux', versions: [] }],
    fields: { type: { label: 'System' }, versions: { help: texts.posture.versions } },
  }),
  domains: ofPosture('DOMAIN', { help: texts.posture.domains }),
  macAddresses: ofPosture('MAC', { label: 'MAC addresses', help: texts.posture.macAddresses }),
  process: ofPosture('PROCESS', {
    fields: {
      osType: { label: 'System' },
      path: { help: texts.posture.path },
      hashes,
      signerFingerprint: { help: texts.posture.signer },
    },
  }),
  semantic: ofPosture('PROCESS_MULTI', {
    label: 'How many must run',
    initial: 'AllOf',
    optionTexts: texts.posture.semantics,
  }),
  processes: ofPosture('PROCESS_MULTI', {
    initial: [{ osType: 'Linux' }],
    fields: {
      osType: { label: 'System' },
      path: { help: texts.posture.path },
      hashes,
      signerFingerprints: { help: texts.posture.signer },
    },
  }),
  timeoutSeconds: ofPosture('MFA', {
    label: 'Seconds of validity',
    help: texts.posture.timeout,
    initial: -1,
  }),
  promptOnWake: ofPosture('MFA', { label: 'Ask again when the device wakes' }),
  promptOnUnlock: ofPosture('MFA', { label: 'Ask again when the device is unlocked' }),
  ignoreLegacyEndpoints: ofPosture('MFA', {
    label: 'No time limit for old clients',
    help: texts.posture.legacy,
  }),
}

/**
 * Adds that the form shows the field only while the authentication policy allows the log-in method.
 */
function ifAllowed(hint: FieldHint): FieldHint {
  return { ...hint, shownIf: { field: 'allowed', is: [true] } }
}

const { logInRules } = texts
/** The methods of log-in that an authentication policy allows. */
export const primaryLogInFieldHints: Readonly<Record<string, FieldHint>> = {
  cert: {
    label: logInRules.cert,
    isRequired: true,
    fields: {
      allowed: { label: logInRules.certAllowed },
      allowExpiredCerts: ifAllowed({ label: logInRules.expired, help: logInRules.expiredHelp }),
    },
  },
  updb: {
    label: logInRules.updb,
    isRequired: true,
    fields: {
      allowed: { label: logInRules.updbAllowed },
      minPasswordLength: ifAllowed({ help: logInRules.lengthHelp }),
      maxAttempts: ifAllowed({ label: logInRules.attempts, help: logInRules.attemptsHelp }),
      lockoutDurationMinutes: ifAllowed({
        label: logInRules.lockout,
        help: logInRules.lockoutHelp,
      }),
      requireMixedCase: ifAllowed({ label: logInRules.mixedCase }),
      requireNumberChar: ifAllowed({ label: logInRules.digit }),
      requireSpecialChar: ifAllowed({ label: logInRules.special }),
    },
  },
  extJwt: {
    label: logInRules.extJwt,
    isRequired: true,
    fields: {
      allowed: { label: logInRules.extJwtAllowed },
      allowedSigners: ifAllowed({
        label: logInRules.signers,
        help: logInRules.signersHelp,
        widget: referencesWidget('external-jwt-signers'),
      }),
    },
  },
}
export const secondaryLogInFieldHints: Readonly<Record<string, FieldHint>> = {
  requireTotp: { label: logInRules.totp },
  requireExtJwtSigner: {
    label: logInRules.secondSigner,
    help: logInRules.secondSignerHelp,
    widget: referenceWidget('external-jwt-signers'),
  },
}

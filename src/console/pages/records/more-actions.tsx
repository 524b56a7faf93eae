import { useSignal } from '@preact/signals'

import { ConfirmDialog } from '../../app/confirm-dialog.tsx'
import { isNarrowWindow } from '../../app/narrow.ts'
import { MANAGEMENT_API_PATH } from '../../../client/cluster-client.ts'
import { DAY_MS, expiryAfter } from '../../controls/expiry.ts'
import { Button } from '../../controls/button.tsx'
import { Field, TextField } from '../../controls/field.tsx'
import { PasswordInput } from '../../controls/password-input.tsx'
import { Menu } from '../../controls/menu.tsx'
import { texts } from '../../texts.ts'
import { isObject } from './json-values.ts'
import type { ConsoleKind } from './kinds.ts'
import { collectionApiPath, recordApiPath, type RecordRow, writeRecord } from './record-data.ts'
import { hasExpiredToken } from './outstanding-token.ts'
import { readApiSessions } from './record-sessions.tsx'
import { routerState } from './record-state.tsx'

interface ActInput {
  readonly username: string
  readonly password: string
  /** Text that the user pasted; only for acts with such a field. */
  readonly text: string
}

interface Act {
  readonly label: string
  readonly what: string
  readonly isDangerous: boolean
  readonly asksPassword: boolean
  /** Label of a text that the user pastes; null if the act needs none. */
  readonly asksText: string | null
  readonly run: (input: ActInput) => Promise<unknown>
}

function act(label: string, what: string, run: Act['run'], more: Partial<Act> = {}): Act {
  return { label, what, run, isDangerous: false, asksPassword: false, asksText: null, ...more }
}

/** The actions that the API offers for a record in its current state. */
export function availableRecordActions(
  kind: Pick<ConsoleKind, 'path'>,
  record: RecordRow,
): readonly Act[] {
  const { acts } = texts
  const { id } = record
  const path = recordApiPath(kind.path, id)
  if (kind.path === 'edge-routers') {
    const run = () => writeRecord({ method: 'POST', path: `${path}/re-enroll` })
    return routerState(record) === 'notEnrolled'
      ? [act(acts.invite, acts.replaceTokenWhat, run)]
      : [act(acts.reEnroll, acts.reEnrollWhat, run, { isDangerous: true })]
  }
  if (kind.path === 'enrollments') return [refreshAct(id, hasExpiredToken(kind, record))]
  if (kind.path === 'cas') return record['isVerified'] === true ? [] : [verifyAct(record)]
  if (kind.path === 'authenticators') {
    return record['method'] === 'cert' ? [reEnrollAct(id)] : []
  }
  if (kind.path !== 'identities') return []
  const outstanding = Object.values(isObject(record['enrollment']) ? record['enrollment'] : {})
  const [enrollmentId] = outstanding.filter(isObject).map((one) => one['id'])
  const own = isObject(record['authenticators']) ? record['authenticators'] : {}
  return [
    ...(typeof enrollmentId === 'string'
      ? [refreshAct(enrollmentId, hasExpiredToken(kind, record))]
      : [inviteAct(id)]),
    ...(isObject(own['cert']) ? [reEnrollAct(String(own['cert']['id']))] : []),
    passwordAct(id, isObject(own['updb']) ? own['updb']['id'] : undefined),
    ...(record['isMfaEnabled'] === true
      ? [
          act(
            acts.resetFactor,
            acts.resetFactorWhat,
            () => writeRecord({ method: 'DELETE', path: `${path}/mfa` }),
            { isDangerous: true },
          ),
        ]
      : []),
    ...(record['hasApiSession'] === true
      ? [act(acts.logOutAll, acts.logOutAllWhat, () => logOutAll(id), { isDangerous: true })]
      : []),
  ]
}

const inADay = (): string => expiryAfter(DAY_MS)

function refreshAct(enrollmentId: string, isExpired: boolean): Act {
  const { acts } = texts
  const path = `${recordApiPath('enrollments', enrollmentId)}/refresh`
  const run = () => writeRecord({ method: 'POST', path, body: { expiresAt: inADay() } })
  return isExpired
    ? act(acts.invite, acts.renewWhat, run)
    : act(acts.refresh, acts.refreshWhat, run)
}

function inviteAct(identityId: string): Act {
  const { acts } = texts
  return act(acts.invite, acts.inviteWhat, () =>
    writeRecord({
      method: 'POST',
      path: collectionApiPath('enrollments'),
      body: { method: 'ott', identityId, expiresAt: inADay() },
    }),
  )
}

/** Replaces the certificate with which a device has enrolled by a new enrollment. */
function reEnrollAct(authenticatorId: string): Act {
  const { acts } = texts
  const path = `${recordApiPath('authenticators', authenticatorId)}/re-enroll`
  const run = () => writeRecord({ method: 'POST', path, body: { expiresAt: inADay() } })
  return act(acts.reEnroll, acts.reEnrollWhat, run, { isDangerous: true })
}

/** Verifies a CA with a certificate that the CA issued for its verification token. */
function verifyAct({ id, verificationToken }: RecordRow): Act {
  const { acts } = texts
  const path = `${recordApiPath('cas', id)}/verify`
  return act(
    acts.verifyCa,
    acts.verifyCaWhat(String(verificationToken)),
    ({ text }) => writeRecord({ method: 'POST', path, text }),
    { asksText: acts.verifyCaText },
  )
}

/** Changes the identity's password, or sets a first one. */
function passwordAct(identityId: string, authenticatorId: unknown): Act {
  const { acts } = texts
  const run = ({ username, password }: ActInput) =>
    typeof authenticatorId === 'string'
      ? writeRecord({
          method: 'PATCH',
          path: recordApiPath('authenticators', authenticatorId),
          body: { username, password },
        })
      : writeRecord({
          method: 'POST',
          path: collectionApiPath('authenticators'),
          body: { method: 'updb', identityId, username, password },
        })
  return act(acts.setPassword, acts.setPasswordWhat, run, { asksPassword: true })
}

async function logOutAll(identityId: string): Promise<void> {
  for (const { id } of await readApiSessions(identityId)) {
    await writeRecord({
      method: 'DELETE',
      path: `${MANAGEMENT_API_PATH}/api-sessions/${encodeURIComponent(id)}`,
    })
  }
}

/** Number of actions with a separate button in a wide window; a menu contains the others. */
const INLINE_ACTIONS = 2

/** All actions on a record; an action with an explanation opens a dialog first. */
export function MoreActions(props: {
  readonly kind: ConsoleKind
  readonly record: RecordRow
  /** False: only the last actions are shown, because the user may not change the record. */
  readonly mayWrite: boolean
  readonly refused: string | null
  /** Actions that are shown first and run immediately, without a dialog. */
  readonly first: readonly ActionButton[]
  /** Actions that are shown last. */
  readonly last: readonly ActionButton[]
  readonly onDone: () => void
}) {
  const { kind, record, mayWrite, refused, first, last, onDone } = props
  const chosen = useSignal<Act | null>(null)
  const own = availableRecordActions(kind, record).map((one): ActionButton => ({
    label: one.label,
    refused,
    isPrimary: one.label === texts.acts.invite && hasExpiredToken(kind, record),
    onClick: () => (chosen.value = one),
  }))
  const all = mayWrite ? [...first, ...own] : []
  const inline = isNarrowWindow.value ? [] : all.slice(0, INLINE_ACTIONS)
  const others = [...all.slice(inline.length), ...(isNarrowWindow.value ? last : [])]
  return (
    <>
      {inline.map(ActionControl)}
      {others.length === 0 ? null : (
        <Menu
          label={inline.length === 0 ? texts.actions : texts.acts.more}
          icon="more"
          closesOnChoice
        >
          {others.map(ActionControl)}
        </Menu>
      )}
      {isNarrowWindow.value ? null : last.map(ActionControl)}
      {chosen.value === null ? null : (
        <ActDialog act={chosen.value} onClose={() => (chosen.value = null)} onDone={onDone} />
      )}
    </>
  )
}

/** A button for an action on a record. */
export interface ActionButton {
  readonly label: string
  readonly refused: string | null
  readonly isBusy?: boolean
  readonly isDangerous?: boolean
  readonly isPrimary?: boolean
  readonly onClick: () => void
}

function ActionControl(props: ActionButton) {
  const { label, refused, isBusy, isDangerous, isPrimary, onClick } = props
  return (
    <Button
      key={label}
      {...(isPrimary === true ? { kind: 'primary', icon: 'key' } : {})}
      {...(isDangerous === true ? { kind: 'danger', icon: 'trash' } : {})}
      refused={refused}
      isBusy={isBusy === true}
      onClick={onClick}
    >
      {label}
    </Button>
  )
}

function ActDialog(props: {
  readonly act: Act
  readonly onClose: () => void
  readonly onDone: () => void
}) {
  const { act: chosen, onClose, onDone } = props
  const username = useSignal('')
  const password = useSignal('')
  const text = useSignal('')
  return (
    <ConfirmDialog
      title={chosen.label}
      verb={chosen.label}
      isDangerous={chosen.isDangerous}
      run={() =>
        chosen.run({ username: username.value, password: password.value, text: text.value })
      }
      done={texts.acts.done(chosen.label)}
      onClose={onClose}
      onDone={onDone}
    >
      <p class="soft">{chosen.what}</p>
      {chosen.asksText === null ? null : (
        <Field label={chosen.asksText}>
          {(ids) => (
            <textarea
              {...ids}
              class="input code"
              rows={6}
              spellcheck={false}
              value={text.value}
              onInput={({ currentTarget }) => (text.value = currentTarget.value)}
            />
          )}
        </Field>
      )}
      {chosen.asksPassword ? (
        <>
          <TextField
            label={texts.logIn.username}
            isRequired
            isFocused
            value={username.value}
            onInput={(typed) => (username.value = typed)}
          />
          <Field label={texts.logIn.password} isRequired>
            {(ids) => (
              <PasswordInput
                ids={ids}
                value={password.value}
                onInput={(typed) => (password.value = typed)}
              />
            )}
          </Field>
        </>
      ) : null}
    </ConfirmDialog>
  )
}

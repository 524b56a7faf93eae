import { useSignal } from '@preact/signals'

import { Failure, FailureNotice } from '../../app/failure.tsx'
import { useLoadedData } from '../../app/loaded.ts'
import { PageHead } from '../../app/page-head.tsx'
import { consoleApiClient, isReadOnly, noteLeaderlessRefusal } from '../../app/console-state.ts'
import { showToast } from '../../app/toasts.tsx'
import { visibleText } from '../../app/visible-text.ts'
import { ApiRefusalError } from '../../../client/client-errors.ts'
import { MANAGEMENT_API_PATH } from '../../../client/cluster-client.ts'
import type { IdentityDetail } from '../../client/served-types.ts'
import { Button } from '../../controls/button.tsx'
import { CheckedForm } from '../../controls/checked-form.tsx'
import { CopyId } from '../../controls/copy.tsx'
import { TextField } from '../../controls/field.tsx'
import { Notice, Skeleton } from '../../controls/status.tsx'
import { texts } from '../../texts.ts'
import { parseRowPage, type RecordRow, writeRecord } from '../records/record-data.ts'
import { FactorDialog } from './factor-dialog.tsx'
import { OwnSessionsPanel } from './own-sessions.tsx'

const AUTHENTICATORS = `${MANAGEMENT_API_PATH}/current-identity/authenticators`

interface Account {
  readonly identity: IdentityDetail
  /** Null if the identity has no password. */
  readonly password: RecordRow | null
}

async function load(signal: AbortSignal): Promise<Account> {
  const [{ data: identity }, own] = await Promise.all([
    consoleApiClient.served('GET /edge/management/v1/current-identity', { signal }),
    consoleApiClient.ask({ path: AUTHENTICATORS, signal }),
  ])
  const password = parseRowPage(own.body).rows.find(({ method }) => method === 'updb') ?? null
  return { identity, password }
}

/** The identity of the user, and a form that changes the user's own password. */
export function ProfilePage() {
  const { profile } = texts
  const loaded = useLoadedData('profile', load)
  const { value: account } = loaded.data
  return (
    <>
      <PageHead title={profile.title} lead={profile.lead} />
      {account !== null ? (
        <div class="stack">
          <div class="columns">
            <Facts {...account} onChange={loaded.reload} />
            <PasswordForm password={account.password} />
          </div>
          <OwnSessionsPanel identityId={account.identity.id} />
        </div>
      ) : loaded.error.value === null ? (
        <div class="panel panel-body" aria-busy="true">
          <Skeleton />
        </div>
      ) : (
        <Failure error={loaded.error.value} retry={loaded.reload} />
      )}
    </>
  )
}

function Facts(props: Account & { readonly onChange: () => void }) {
  const { identity, password, onChange } = props
  const { profile } = texts
  const isSettingUp = useSignal(false)
  const { isAdmin } = identity
  const granted = (identity.permissions ?? []).join(', ') || profile.noPermissions
  const facts = [
    [profile.id, <CopyId id={identity.id} />],
    ...(password === null ? [] : [[profile.username, String(password['username'] ?? '')] as const]),
    [profile.permissions, isAdmin ? profile.admin : granted],
    [
      profile.factor,
      identity.isMfaEnabled ? (
        profile.factorOn
      ) : (
        <span class="row">
          {profile.factorOff}
          <Button
            refused={isReadOnly.value ? texts.banner.refused : null}
            onClick={() => (isSettingUp.value = true)}
          >
            {profile.setUp}
          </Button>
        </span>
      ),
    ],
  ] as const
  return (
    <section class="panel" aria-labelledby="account">
      <div class="panel-head">
        <h2 id="account">{visibleText(identity.name)}</h2>
      </div>
      <dl class="panel-body facts">
        {facts.map(([label, value]) => (
          <div class="fact" key={label}>
            <dt>{label}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      {isSettingUp.value ? (
        <FactorDialog onClose={() => (isSettingUp.value = false)} onDone={onChange} />
      ) : null}
    </section>
  )
}

/** The API refuses a wrong current password like a failed log-in. */
function isWrongPassword(error: unknown): boolean {
  return error instanceof ApiRefusalError && error.status === 401
}

function PasswordForm({ password }: Pick<Account, 'password'>) {
  const { profile } = texts
  const current = useSignal('')
  const next = useSignal('')
  const repeated = useSignal('')
  const error = useSignal<unknown>(null)
  const differs = useSignal(false)
  const isBusy = useSignal(false)
  const fields = [
    [profile.current, current, 'current-password'],
    [profile.next, next, 'new-password'],
    [profile.repeat, repeated, 'new-password'],
  ] as const
  const change = async (id: string): Promise<void> => {
    error.value = null
    differs.value = next.value !== repeated.value
    if (differs.value) return
    isBusy.value = true
    try {
      await writeRecord({
        method: 'PATCH',
        path: `${AUTHENTICATORS}/${encodeURIComponent(id)}`,
        body: { currentPassword: current.value, password: next.value },
      })
      for (const [, field] of fields) field.value = ''
      showToast(profile.changed)
    } catch (refusal) {
      noteLeaderlessRefusal(refusal)
      error.value = refusal
    } finally {
      isBusy.value = false
    }
  }
  return (
    <section class="panel" aria-labelledby="password">
      <div class="panel-head">
        <h2 id="password">{profile.password}</h2>
      </div>
      {password === null ? (
        <p class="panel-body soft">{profile.noPassword}</p>
      ) : (
        <CheckedForm
          class="panel-body form"
          label={profile.password}
          onSubmit={() => {
            if (!isBusy.value && !isReadOnly.value) void change(password.id)
          }}
        >
          {isWrongPassword(error.value) ? (
            <Notice tone="bad">{profile.wrong}</Notice>
          ) : (
            <FailureNotice error={error.value} />
          )}
          {differs.value ? <Notice tone="bad">{profile.differs}</Notice> : null}
          {fields.map(([label, field, autocomplete]) => (
            <TextField
              key={label}
              label={label}
              type="password"
              autocomplete={autocomplete}
              isRequired
              value={field.value}
              onInput={(typed) => (field.value = typed)}
            />
          ))}
          <Button
            type="submit"
            kind="primary"
            isBusy={isBusy.value}
            refused={isReadOnly.value ? texts.banner.refused : null}
          >
            {profile.change}
          </Button>
        </CheckedForm>
      )}
    </section>
  )
}

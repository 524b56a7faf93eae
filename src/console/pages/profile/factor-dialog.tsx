import { useSignal } from '@preact/signals'

import { ConfirmDialog } from '../../app/confirm-dialog.tsx'
import { consoleApiClient } from '../../app/console-state.ts'
import { FailureNotice } from '../../app/failure.tsx'
import { useLoadedData } from '../../app/loaded.ts'
import { MANAGEMENT_API_PATH } from '../../../client/cluster-client.ts'
import { CopyText } from '../../controls/copy.tsx'
import { TextField } from '../../controls/field.tsx'
import { Skeleton } from '../../controls/status.tsx'
import { texts } from '../../texts.ts'
import { QrCode } from '../../controls/qr-code.tsx'

const OWN_FACTOR = `${MANAGEMENT_API_PATH}/current-identity/mfa`

interface NewFactor {
  readonly provisioningUrl: string
  readonly recoveryCodes: readonly string[]
}

/** Begins a new set-up, which replaces one that was not completed. */
async function beginSetUp(signal: AbortSignal): Promise<NewFactor> {
  await consoleApiClient.ask({ method: 'POST', path: OWN_FACTOR, signal })
  const { body } = await consoleApiClient.ask({ path: OWN_FACTOR, signal })
  const { provisioningUrl, recoveryCodes } = (body as { readonly data: Partial<NewFactor> }).data
  return { provisioningUrl: provisioningUrl ?? '', recoveryCodes: recoveryCodes ?? [] }
}

/** Sets up an authenticator app for the user's own log-ins. */
export function FactorDialog(props: { readonly onClose: () => void; readonly onDone: () => void }) {
  const { profile } = texts
  const code = useSignal('')
  const begun = useLoadedData('own-factor', beginSetUp)
  const { value: factor } = begun.data
  const run = async (): Promise<void> => {
    await consoleApiClient.ask({
      method: 'POST',
      path: `${OWN_FACTOR}/verify`,
      body: { code: code.value.trim() },
    })
  }
  return (
    <ConfirmDialog
      title={profile.setUpFactor}
      verb={profile.setUp}
      refused={code.value.trim() === '' ? profile.codeFirst : null}
      run={run}
      done={profile.factorDone}
      {...props}
    >
      <FailureNotice error={begun.error.value} />
      {factor === null ? (
        begun.error.value === null ? (
          <Skeleton />
        ) : null
      ) : (
        <>
          <p class="soft">{profile.scan}</p>
          <QrCode text={factor.provisioningUrl} label={profile.qr} />
          <CopyText
            label={profile.secret}
            text={URL.parse(factor.provisioningUrl)?.searchParams.get('secret') ?? ''}
          />
          <div class="codes">
            <CopyText label={profile.recovery} text={factor.recoveryCodes.join('\n')} />
          </div>
          <TextField
            label={texts.logIn.code}
            hint={profile.codeHint}
            inputMode="numeric"
            autocomplete="one-time-code"
            isRequired
            value={code.value}
            onInput={(typed) => (code.value = typed)}
          />
        </>
      )}
    </ConfirmDialog>
  )
}

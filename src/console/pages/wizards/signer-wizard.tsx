import { useSignal } from '@preact/signals'

import {
  type PresetFieldName,
  type PresetValues,
  buildSignerBody,
  type SignerPreset,
  signerPreset,
  signerPresets,
} from '../../../client/signer-presets.ts'
import { failureText } from '../../app/failure.tsx'
import { CONSOLE_BASE_PATH, navigateTo, consolePath } from '../../app/navigation.ts'
import { consoleApiClient } from '../../app/console-state.ts'
import { showToast } from '../../app/toasts.tsx'
import { visibleText } from '../../app/visible-text.ts'
import type { ExternalJwtSignerDiscovered } from '../../client/served-types.ts'
import { Button } from '../../controls/button.tsx'
import { CheckedForm } from '../../controls/checked-form.tsx'
import { CopyText } from '../../controls/copy.tsx'
import { Field, TextField } from '../../controls/field.tsx'
import { Notice } from '../../controls/status.tsx'
import { texts } from '../../texts.ts'
import { useDraftSignal } from '../records/drafts.ts'
import { collectionApiPath, writeRecord } from '../records/record-data.ts'
import { useMissingPermissionReason } from './missing-permission.ts'
import { CancelWizard, WizardHead } from './wizard-head.tsx'

/** The controller makes two requests to the provider, each within its own limit. */
const DISCOVERY_TIMEOUT_MS = 15_000
const KIND = 'external-jwt-signers'

interface Input {
  readonly preset: string
  readonly values: PresetValues
  /** Name of the signer that the user typed; null: the name of the provider. */
  readonly name: string | null
  /** Claim that the user typed; null: the claim of the preset. */
  readonly claim: string | null
}

const empty: Input = { preset: 'google', values: {}, name: null, claim: null }

/**
 * Creates an external JWT signer. It asks for the few values that only the user knows; the
 * controller reads the others from the provider, because this page may not connect to it.
 */
export function SignerWizard() {
  const { signers, wizards } = texts
  const input = useDraftSignal<Input>('wizards/signer', empty)
  const refused = useMissingPermissionReason(['external-jwt-signer.create', 'admin'])
  const found = useSignal<ExternalJwtSignerDiscovered | null>(null)
  const error = useSignal<unknown>(null)
  const isBusy = useSignal(false)
  const { preset: chosen, values, name, claim } = input.value
  const preset = signerPreset(chosen) ?? signerPresets[0]
  if (preset === undefined) return null
  const issuer = preset.issuerOf(values)
  // Ignores the metadata of another issuer.
  const provider = found.value?.issuer === issuer ? found.value : null
  const run = (work: () => Promise<void>): void => {
    isBusy.value = true
    error.value = null
    work()
      .catch((failure: unknown) => (error.value = failure))
      .finally(() => (isBusy.value = false))
      .catch(() => undefined)
  }
  const discover = async (): Promise<void> => {
    if (issuer === null) throw new TypeError(signers.incomplete)
    const { data } = await consoleApiClient.served(
      'POST /edge/management/v1/jwt-signer-setup/discover',
      {
        body: { issuer },
        changesNothing: true,
        timeoutMs: DISCOVERY_TIMEOUT_MS,
      },
    )
    found.value = data
  }
  const create = async (of: ExternalJwtSignerDiscovered): Promise<void> => {
    const named = { name: name?.trim() ?? preset.label, claim: claim?.trim() ?? preset.claim }
    const body = buildSignerBody(preset, values, named, of)
    const id = await writeRecord({ method: 'POST', path: collectionApiPath(KIND), body })
    input.value = empty
    showToast(signers.created)
    navigateTo(consolePath(KIND, id ?? ''))
  }
  return (
    <>
      <WizardHead name="signer" />
      <CheckedForm
        class="panel record-form"
        label={wizards.titles.signer}
        onSubmit={() => {
          if (isBusy.value || refused !== null) return
          run(provider === null ? discover : () => create(provider))
        }}
      >
        <div class="panel-body form">
          {refused === null ? null : <Notice tone="warn">{refused}</Notice>}
          {error.value instanceof TypeError ? (
            <Notice tone="bad">{error.value.message}</Notice>
          ) : error.value === null ? null : (
            <Notice tone="bad">
              {failureText(error.value)} <a href={consolePath(KIND, 'new')}>{signers.byHand}</a>
            </Notice>
          )}
          <PresetInputs
            preset={preset}
            values={values}
            onPreset={(next) => (input.value = { ...input.value, preset: next, claim: null })}
            onValue={(field, value) => {
              input.value = { ...input.value, values: { ...values, [field]: value } }
            }}
          />
          {provider === null ? null : (
            <>
              <Found provider={provider} />
              <TextField
                label={wizards.fields.name.label}
                hint={signers.nameHint}
                value={name ?? preset.label}
                onInput={(typed) => (input.value = { ...input.value, name: typed })}
              />
              <TextField
                label={signers.claim}
                hint={signers.claims[preset.name] ?? ''}
                value={claim ?? preset.claim}
                isMono
                onInput={(typed) => (input.value = { ...input.value, claim: typed })}
              />
            </>
          )}
        </div>
        <div class="form-foot">
          <a href={consolePath(KIND, 'new')}>{signers.byHand}</a>
          <CancelWizard />
          <Button type="submit" kind="primary" isBusy={isBusy.value} refused={refused}>
            {provider === null ? signers.lookUp : signers.create}
          </Button>
        </div>
      </CheckedForm>
    </>
  )
}

function PresetInputs(props: {
  readonly preset: SignerPreset
  readonly values: PresetValues
  readonly onPreset: (name: string) => void
  readonly onValue: (field: PresetFieldName, value: string) => void
}) {
  const { preset, values, onPreset, onValue } = props
  return (
    <>
      <Field label={texts.signers.provider}>
        {(ids) => (
          <select
            {...ids}
            class="input"
            value={preset.name}
            onChange={({ currentTarget }) => onPreset(currentTarget.value)}
          >
            {signerPresets.map(({ name, label }) => (
              <option key={name} value={name}>
                {label}
              </option>
            ))}
          </select>
        )}
      </Field>
      <CopyText
        label={texts.signers.register(preset.label)}
        text={`${location.origin}${CONSOLE_BASE_PATH}/`}
      />
      {preset.fields.map(({ name, isOptional = false }) => (
        <TextField
          key={name}
          {...texts.signers.fields[name]}
          isRequired={!isOptional}
          value={values[name] ?? ''}
          onInput={(typed) => onValue(name, typed)}
        />
      ))}
    </>
  )
}

/** The addresses that the controller read from the provider. */
function Found({ provider }: { readonly provider: ExternalJwtSignerDiscovered }) {
  const { signers } = texts
  const { issuer, jwksEndpoint, authorizationEndpoint, keyIds, keysFault } = provider
  return (
    <section class="stack" aria-label={signers.found}>
      {keyIds === null ? (
        <Notice tone="bad">{signers.noKeys(keysFault ?? '')}</Notice>
      ) : keyIds.length === 0 ? (
        <Notice tone="bad">{signers.noUsableKeys}</Notice>
      ) : (
        <Notice tone="good">{signers.keys(keyIds.length)}</Notice>
      )}
      <dl class="facts">
        {[
          [signers.issuer, issuer],
          [signers.keysAt, jwksEndpoint],
          [signers.logInAt, authorizationEndpoint ?? signers.noLogIn],
        ].map(([label = '', value = '']) => (
          <div key={label}>
            <dt>{label}</dt>
            <dd class="mono">{visibleText(value)}</dd>
          </div>
        ))}
      </dl>
    </section>
  )
}

import { useSignal } from '@preact/signals'

import { FailureNotice } from '../../app/failure.tsx'
import { consolePath } from '../../app/navigation.ts'
import { consoleApiClient } from '../../app/console-state.ts'
import { showToast } from '../../app/toasts.tsx'
import { visibleText } from '../../app/visible-text.ts'
import { Button, LinkButton } from '../../controls/button.tsx'
import { CheckedForm } from '../../controls/checked-form.tsx'
import { Field, TextField } from '../../controls/field.tsx'
import { Icon } from '../../controls/icon.tsx'
import { Notice } from '../../controls/status.tsx'
import { texts } from '../../texts.ts'
import { useDraftSignal } from '../records/drafts.ts'
import { RolesInput } from '../records/reference-inputs.tsx'
import { type ConfigTypeIds, serviceSteps, type ServiceWizardInput } from './service-steps.ts'
import { useMissingPermissionReason } from './missing-permission.ts'
import { CancelWizard, WizardHead } from './wizard-head.tsx'
import { type CreatedRecord, runWizardSteps, undoWizardSteps, WizardFailure } from './steps.ts'

const empty: ServiceWizardInput = {
  name: '',
  address: '',
  port: 443,
  protocol: 'tcp',
  hostAddress: '',
  hostPort: 443,
  dialRoles: [],
  bindRoles: [],
}

async function configTypeIds(): Promise<ConfigTypeIds> {
  const filter = 'name in ["intercept.v1", "host.v1"]'
  const query = { filter }
  const { data } = await consoleApiClient.served('GET /edge/management/v1/config-types', { query })
  const idOf = (name: string): string => data.find((one) => one.name === name)?.id ?? ''
  return { intercept: idOf('intercept.v1'), host: idOf('host.v1') }
}

/** One form for a service, its configs, and the policies that grant access to it. */
export function ServiceWizard() {
  const { wizards } = texts
  const service = useDraftSignal<ServiceWizardInput>('wizards/service', empty)
  const refused = useMissingPermissionReason([
    'config.create',
    'service.create',
    'service-policy.create',
  ])
  const made = useSignal<readonly CreatedRecord[]>([])
  const error = useSignal<unknown>(null)
  const isBusy = useSignal(false)
  const isDone = useSignal(false)
  /**
   * Set when the service is created: whether the user chose roles that may dial it, and roles that
   * may host it.
   */
  const given = useSignal({ dial: true, bind: true })
  const { value } = service
  const put = (changed: Partial<ServiceWizardInput>): void => {
    service.value = { ...service.value, ...changed }
  }
  const attempt = (work: () => Promise<void>): void => {
    isBusy.value = true
    error.value = null
    work()
      .catch((failure: unknown) => {
        error.value = failure instanceof WizardFailure ? failure.cause : failure
      })
      .finally(() => (isBusy.value = false))
      .catch(() => undefined)
  }
  const run = (): void =>
    attempt(async () => {
      const types = await configTypeIds()
      await runWizardSteps(serviceSteps(value, types), (so) => (made.value = so))
      isDone.value = true
      given.value = { dial: value.dialRoles.length > 0, bind: value.bindRoles.length > 0 }
      service.value = empty
      showToast(wizards.madeService(value.name))
    })
  const undo = (): void =>
    attempt(async () => {
      await undoWizardSteps(made.value)
      made.value = []
      isDone.value = false
      showToast(wizards.undone)
    })
  const isPartly = error.value !== null && made.value.length > 0 && !isDone.value
  return (
    <>
      <WizardHead name="service" />
      <CheckedForm
        class="panel record-form"
        label={wizards.titles.service}
        onSubmit={() => {
          if (!isBusy.value && !isDone.value && !isPartly && refused === null) run()
        }}
      >
        <div class="panel-body form">
          {refused === null ? null : <Notice tone="warn">{refused}</Notice>}
          <FailureNotice error={error.value} />
          {made.value.length === 0 ? null : (
            <MadeList made={made.value} isDone={isDone.value} given={given.value} />
          )}
          {isDone.value ? null : <ServiceFields value={value} put={put} />}
        </div>
        <div class="form-foot">
          <span />
          {made.value.length === 0 ? null : (
            <Button kind="danger" isBusy={isBusy.value} onClick={undo}>
              {wizards.undo(made.value.length)}
            </Button>
          )}
          {isDone.value ? (
            <LinkButton kind="primary" href={consolePath('services', made.value[2]?.id ?? '')}>
              {wizards.openService}
            </LinkButton>
          ) : (
            <>
              {made.value.length === 0 ? <CancelWizard /> : null}
              <Button
                type="submit"
                kind="primary"
                isBusy={isBusy.value}
                refused={refused ?? (isPartly ? wizards.undoFirst : null)}
              >
                {wizards.make}
              </Button>
            </>
          )}
        </div>
      </CheckedForm>
    </>
  )
}

/** The created records, and the roles that the service still needs. */
function MadeList(props: {
  readonly made: readonly CreatedRecord[]
  readonly isDone: boolean
  readonly given: { readonly dial: boolean; readonly bind: boolean }
}) {
  const { wizards } = texts
  const { made, isDone, given } = props
  const [, , service, dial, bind] = made
  const name = visibleText(service?.name ?? '')
  const missing = [
    { policy: dial, isGiven: given.dial, text: wizards.noUsers(name), verb: wizards.chooseUsers },
    { policy: bind, isGiven: given.bind, text: wizards.noHosts(name), verb: wizards.chooseHosts },
  ].filter(({ policy, isGiven }) => isDone && policy !== undefined && !isGiven)
  return (
    <>
      <Notice tone={isDone && missing.length === 0 ? 'good' : 'warn'}>
        {!isDone
          ? wizards.partly
          : missing.length === 0
            ? wizards.made
            : wizards.madeOnly(missing.map(({ text }) => text))}
        {missing.length === 0 ? null : (
          <div class="row">
            {missing.map(({ policy, verb }) => (
              <LinkButton
                key={verb}
                href={`${consolePath('service-policies', policy?.id ?? '')}?tab=edit`}
              >
                {verb}
              </LinkButton>
            ))}
          </div>
        )}
      </Notice>
      <ul class="steps">
        {made.map(({ title, name: record, path, id }) => (
          <li key={id}>
            <Icon name="check" />
            <span>
              <a href={consolePath(path.slice(path.lastIndexOf('/') + 1), id)}>
                {visibleText(record)}
              </a>{' '}
              <span class="faint">{title}</span>
            </span>
          </li>
        ))}
      </ul>
    </>
  )
}

function ServiceFields(props: {
  readonly value: ServiceWizardInput
  readonly put: (changed: Partial<ServiceWizardInput>) => void
}) {
  const { fields } = texts.wizards
  const { value, put } = props
  const text = (name: 'name' | 'address' | 'hostAddress') => ({
    label: fields[name].label,
    hint: fields[name].hint,
    placeholder: fields[name].example,
    isRequired: true,
    value: value[name],
    onInput: (typed: string) => put({ [name]: typed }),
  })
  const port = (name: 'port' | 'hostPort') => ({
    label: fields[name].label,
    type: 'number' as const,
    isRequired: true,
    value: String(value[name]),
    onInput: (typed: string) => put({ [name]: Number(typed) }),
  })
  const roles = (name: 'dialRoles' | 'bindRoles') => (
    <Field label={fields[name].label} hint={fields[name].hint}>
      {(ids) => (
        <RolesInput
          ids={ids}
          kind="identities"
          isOwn={false}
          semantic="AnyOf"
          chosen={value[name]}
          onChange={(chosen) => put({ [name]: chosen })}
        />
      )}
    </Field>
  )
  return (
    <>
      <TextField {...text('name')} />
      <Field label={fields.protocol.label}>
        {(ids) => (
          <select
            {...ids}
            class="input"
            value={value.protocol}
            onChange={({ currentTarget }) =>
              put({ protocol: currentTarget.value === 'udp' ? 'udp' : 'tcp' })
            }
          >
            <option value="tcp">TCP</option>
            <option value="udp">UDP</option>
          </select>
        )}
      </Field>
      <div class="address-port" role="group" aria-label={fields.address.label}>
        <TextField {...text('address')} />
        <TextField {...port('port')} />
      </div>
      <div class="address-port" role="group" aria-label={fields.hostAddress.label}>
        <TextField {...text('hostAddress')} />
        <TextField {...port('hostPort')} />
      </div>
      {roles('dialRoles')}
      {roles('bindRoles')}
    </>
  )
}

import { useSignal } from '@preact/signals'

import { isReadOnly } from '../../app/console-state.ts'
import { FailureNotice } from '../../app/failure.tsx'
import { useLoadedData } from '../../app/loaded.ts'
import { hasPermission } from '../../app/management-document.ts'
import { consolePath } from '../../app/navigation.ts'
import { visibleText } from '../../app/visible-text.ts'
import { Button } from '../../controls/button.tsx'
import { Field } from '../../controls/field.tsx'
import { texts } from '../../texts.ts'
import { isObject } from './json-values.ts'
import { readRows, recordApiPath, writeRecord } from './record-data.ts'
import { ReferenceInput } from './reference-inputs.tsx'

/** Configs that an identity gets for a service instead of the service's configs. */
export function ServiceConfigs({ identityId }: { readonly identityId: string }) {
  const { serviceConfigs } = texts
  const path = `identities/${encodeURIComponent(identityId)}/service-configs`
  const loaded = useLoadedData(path, (signal) => readRows(path, '', signal))
  const service = useSignal<readonly string[]>([])
  const config = useSignal<readonly string[]>([])
  const error = useSignal<unknown>(null)
  const rows = loaded.data.value?.rows ?? []
  const mayWrite = hasPermission('identity.update')
  const refused = isReadOnly.value
    ? texts.banner.refused
    : mayWrite
      ? null
      : texts.failure.notAllowed
  const write = (method: 'POST' | 'DELETE', serviceId: string, configId: string): void => {
    error.value = null
    const body = [{ serviceId, configId }]
    writeRecord({
      method,
      path: `${recordApiPath('identities', identityId)}/service-configs`,
      body,
    })
      .then(() => {
        service.value = []
        config.value = []
        loaded.reload()
      })
      .catch((failure: unknown) => (error.value = failure))
  }
  const [serviceId, configId] = [service.value[0], config.value[0]]
  return (
    <details class="panel group-panel" open={rows.length > 0}>
      <summary>{serviceConfigs.title}</summary>
      <div class="panel-body stack">
        <p class="soft small">{serviceConfigs.what}</p>
        <FailureNotice error={error.value ?? loaded.error.value} />
        <ul class="related-rows">
          {rows.map((row) => (
            <li key={`${String(row['serviceId'])} ${String(row['configId'])}`}>
              <Ref path="services" value={row['service']} id={String(row['serviceId'])} />
              {' → '}
              <Ref path="configs" value={row['config']} id={String(row['configId'])} />{' '}
              <Button
                kind="quiet"
                refused={refused}
                label={serviceConfigs.removeOf(nameOf(row['config']), nameOf(row['service']))}
                onClick={() => write('DELETE', String(row['serviceId']), String(row['configId']))}
              >
                {serviceConfigs.remove}
              </Button>
            </li>
          ))}
        </ul>
        {mayWrite ? (
          <>
            <Field label={serviceConfigs.service}>
              {(ids) => (
                <ReferenceInput
                  ids={ids}
                  kind="services"
                  chosen={service.value}
                  isSingle
                  onChange={(next) => (service.value = next)}
                />
              )}
            </Field>
            <Field label={serviceConfigs.config}>
              {(ids) => (
                <ReferenceInput
                  ids={ids}
                  kind="configs"
                  chosen={config.value}
                  isSingle
                  onChange={(next) => (config.value = next)}
                />
              )}
            </Field>
            <div class="row">
              <Button
                refused={
                  serviceId === undefined || configId === undefined
                    ? serviceConfigs.chooseBoth
                    : refused
                }
                onClick={() => write('POST', serviceId ?? '', configId ?? '')}
              >
                {serviceConfigs.add}
              </Button>
            </div>
          </>
        ) : null}
      </div>
    </details>
  )
}

function nameOf(value: unknown): string {
  return isObject(value) ? visibleText(String(value['name'] ?? '')) : ''
}

function Ref(props: { readonly path: string; readonly value: unknown; readonly id: string }) {
  return <a href={consolePath(props.path, props.id)}>{nameOf(props.value) || props.id}</a>
}

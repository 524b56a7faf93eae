import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'

import { failureText } from '../../app/failure.tsx'
import { Field } from '../../controls/field.tsx'
import { Skeleton } from '../../controls/status.tsx'
import { pageTexts } from '../../page-texts.ts'
import { texts } from '../../texts.ts'
import type { ServedSchema } from '../../client/api-document.ts'
import { CancelledError } from '../../../client/client-errors.ts'
import { resolveDataSchema } from './data-schema.ts'
import { initialDraft, type FormFault, groupWidget } from './form-model.ts'
import type { FieldHint } from './field-hints.ts'
import type { FormField, GroupWidget } from './form-field.ts'
import { type Draft, isObject, isDeepEqual } from './json-values.ts'
import { JsonInput } from './leaf-inputs.tsx'
import { readRecord } from './record-data.ts'

interface ConfigDataProps {
  readonly field: FormField
  /** Id of the config type; '' until one is chosen. */
  readonly typeId: string
  readonly value: unknown
  /** True: the form fills in the required members of the schema, until the user types something. */
  readonly isNew: boolean
  readonly fault: FormFault | null
  readonly onChange: (value: unknown) => void
  readonly onBad: (isBad: boolean) => void
  readonly renderForm: (widget: GroupWidget, value: Draft) => ComponentChildren
}

/** The form of a config type. */
interface TypeForm {
  readonly typeId: string
  /** Null if the schema of the type names no members, or if it could not be loaded. */
  readonly widget: GroupWidget | null
  /** Why the schema could not be loaded; null if it was. */
  readonly failure: unknown
}

const { configHints } = pageTexts
/** Hints for the data of the config types of OpenZiti that most services have. */
const dataHints: Readonly<Record<string, Readonly<Record<string, FieldHint>>>> = {
  'intercept.v1': {
    protocols: { initial: ['tcp'] },
    addresses: { help: configHints.addresses },
    portRanges: { initial: [{}] },
    sourceIp: { help: configHints.sourceIp, isRare: true },
    allowedSourceAddresses: { help: configHints.sources, isRare: true },
    dialOptions: { help: configHints.dialOptions, isRare: true },
  },
  'host.v1': { protocol: { initial: 'tcp' }, address: {}, port: {} },
}

async function loadForm(typeId: string, signal: AbortSignal): Promise<TypeForm> {
  try {
    const { record } = await readRecord('config-types', typeId, signal)
    const { schema } = record
    const resolved = resolveDataSchema(isObject(schema) ? (schema as ServedSchema) : {})
    const fields = dataHints[String(record['name'])] ?? {}
    return { typeId, widget: groupWidget(resolved, { fields }), failure: null }
  } catch (failure) {
    return { typeId, widget: null, failure }
  }
}

function useTypeForm(typeId: string): TypeForm | null {
  const form = useSignal<TypeForm | null>(null)
  useEffect(() => {
    if (typeId === '') return undefined
    const cancel = new AbortController()
    loadForm(typeId, cancel.signal)
      .then((loaded) => {
        if (!(loaded.failure instanceof CancelledError)) form.value = loaded
      })
      .catch(() => undefined)
    return () => cancel.abort()
  }, [typeId])
  return form.value?.typeId === typeId ? form.value : null
}

/**
 * The data of a config. Form and JSON show the same value, so nothing is lost when the user
 * switches between them.
 */
export function ConfigDataInput(props: ConfigDataProps) {
  const { field, typeId, value, isNew, fault, onChange, onBad, renderForm } = props
  const form = useTypeForm(typeId)
  const wantsJson = useSignal(false)
  const isBad = useSignal(false)
  const filled = useRef<Draft>({})
  const data = value ?? {}
  const widget = isObject(data) ? (form?.widget ?? null) : null
  useEffect(() => {
    if (!isNew || widget === null) return
    const usual = initialDraft(widget.fields)
    const isUntouched = isDeepEqual(data, filled.current)
    if (isUntouched && !isDeepEqual(data, usual)) onChange(usual)
    // A restored draft may contain the usual data, which another type must not inherit either.
    if (isUntouched || isDeepEqual(data, usual)) filled.current = usual
  }, [widget])
  // Without a type, there is nothing to fill in yet.
  if (isNew && typeId === '') return null
  const isJson = wantsJson.value || widget === null
  const reason = fault === null ? null : texts.faults.at(fault.below, fault.reason)
  return (
    <fieldset class="rows config-data">
      <legend class="label">
        {field.label}
        <span aria-hidden="true"> *</span>
      </legend>
      <ViewSwitch
        isJson={isJson}
        refused={isBad.value ? texts.form.mendJson : widget === null ? noForm(typeId, form) : null}
        onSwitch={(next) => (wantsJson.value = next)}
      />
      {isJson ? (
        typeId !== '' && form === null ? (
          <Skeleton />
        ) : (
          <Field
            label={texts.form.json}
            hint={widget === null ? noForm(typeId, form) : undefined}
            fault={reason}
          >
            {(ids) => (
              <JsonInput
                ids={ids}
                value={data}
                onChange={(next) => onChange(next ?? {})}
                onBad={(bad) => {
                  isBad.value = bad
                  onBad(bad)
                }}
              />
            )}
          </Field>
        )
      ) : (
        <div class="form">
          {widget === null || !isObject(data) ? null : renderForm(widget, data)}
        </div>
      )}
    </fieldset>
  )
}

/** Why there is no form. */
function noForm(typeId: string, form: TypeForm | null): string {
  const { noForm: reasons } = texts.form
  if (typeId === '') return reasons.noType
  if (form === null) return texts.loading
  return form.failure === null ? reasons.noMembers : failureText(form.failure)
}

function ViewSwitch(props: {
  readonly isJson: boolean
  /** Why there is no form now. */
  readonly refused: string | null
  readonly onSwitch: (toJson: boolean) => void
}) {
  const { isJson, refused, onSwitch } = props
  return (
    <div class="segments" role="group" aria-label={texts.form.view}>
      <button
        type="button"
        aria-pressed={!isJson}
        aria-disabled={refused !== null}
        title={refused ?? undefined}
        onClick={() => {
          if (refused === null) onSwitch(false)
        }}
      >
        {texts.form.asForm}
      </button>
      <button type="button" aria-pressed={isJson} onClick={() => onSwitch(true)}>
        {texts.form.json}
      </button>
    </div>
  )
}

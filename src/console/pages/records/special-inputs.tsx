import { useSignal } from '@preact/signals'

import { clusterMembers } from '../../app/console-state.ts'
import { Field } from '../../controls/field.tsx'
import { Chips, Picker } from '../../controls/picker.tsx'
import { pageTexts } from '../../page-texts.ts'
import { texts } from '../../texts.ts'
import type { FormFault } from './form-model.ts'
import { isObject, stringItems } from './json-values.ts'
import { ChoiceInput, type LeafProps, TextInput } from './leaf-inputs.tsx'
import { permissionNames } from './permission-names.ts'
import { ReferenceInput } from './reference-inputs.tsx'

/** ID of the record with the settings of all controllers. */
const ALL_CONTROLLERS = 'global'

/** One controller of the cluster, or all of them. */
export function ControllerInput(props: LeafProps) {
  const ids = clusterMembers.list.value.map(({ id }) => id)
  return (
    <ChoiceInput
      {...props}
      options={[ALL_CONTROLLERS, ...ids]}
      names={{ [ALL_CONTROLLERS]: pageTexts.specialInputs.allControllers }}
      mayBeNone={false}
    />
  )
}

/** Permissions of an identity, which are picked from the known ones. */
export function PermissionsInput({ ids, value, onChange }: LeafProps) {
  const chosen = stringItems(value)
  return (
    <div class="chosen">
      <Chips
        values={chosen.map((name) => ({ value: name, text: name }))}
        onRemove={(name) => onChange(chosen.filter((one) => one !== name))}
      />
      <Picker
        {...ids}
        placeholder={texts.picker.choose}
        load={(typed) => {
          const found = permissionNames.filter(
            (name) => name.includes(typed.trim()) && !chosen.includes(name),
          )
          const options = found.map((name) => ({ value: name, text: name }))
          return Promise.resolve({ options, totalCount: found.length })
        }}
        onPick={({ value: name }) => onChange([...chosen, name])}
      />
    </div>
  )
}

const { enrollments, enrollmentOf } = pageTexts.specialInputs
type Method = keyof typeof enrollments
const methods = Object.keys(enrollments) as readonly Method[]

/** How a new identity enrolls: by one of the methods, with the value that the method needs. */
export function EnrollmentInput(props: {
  readonly label: string
  readonly value: unknown
  readonly fault: FormFault | null
  readonly onChange: (value: unknown) => void
}) {
  const { label, value, fault, onChange } = props
  const now = isObject(value) ? value : {}
  const chosen = useSignal<Method>('none')
  // A method without its value yet is not part of the draft.
  const method = methods.find((one) => now[one] !== undefined) ?? chosen.value
  const reason = fault?.reason ?? null
  return (
    <>
      <Field label={label} fault={method === 'ott' ? reason : null}>
        {(ids) => (
          <ChoiceInput
            ids={ids}
            value={method}
            options={methods}
            names={enrollments}
            mayBeNone={false}
            onChange={(next) => {
              chosen.value = next === 'ott' ? 'none' : (next as Method)
              onChange(next === 'ott' ? { ott: true } : undefined)
            }}
          />
        )}
      </Field>
      {method === 'ottca' ? (
        <Field label={enrollmentOf.ottca} fault={reason} isRequired>
          {(ids) => (
            <ReferenceInput
              ids={ids}
              kind="cas"
              isSingle
              chosen={stringItems([now['ottca']])}
              onChange={([ottca]) => onChange(ottca === undefined ? undefined : { ottca })}
            />
          )}
        </Field>
      ) : null}
      {method === 'updb' ? (
        <Field label={enrollmentOf.updb} fault={reason} isRequired>
          {(ids) => (
            <TextInput
              ids={ids}
              isSecret={false}
              value={now['updb']}
              onChange={(updb) => onChange(updb === undefined ? undefined : { updb })}
            />
          )}
        </Field>
      ) : null}
    </>
  )
}

import { useSignal } from '@preact/signals'
import { useRef } from 'preact/hooks'

import { CommandFailure } from '../../../controller/command-failure.ts'
import { CancelledError } from '../../../client/client-errors.ts'
import { failureText } from '../../app/failure.tsx'
import { showToast } from '../../app/toasts.tsx'
import { visibleText } from '../../app/visible-text.ts'
import { Button } from '../../controls/button.tsx'
import { Field } from '../../controls/field.tsx'
import { Notice } from '../../controls/status.tsx'
import { pageTexts } from '../../page-texts.ts'
import { texts } from '../../texts.ts'
import { AccessPreview, previewedCollection } from '../access/preview.tsx'
import { useMissingPermissionReason } from '../wizards/missing-permission.ts'
import { CancelWizard, WizardHead } from '../wizards/wizard-head.tsx'
import {
  runImport,
  IMPORT_BYTES_MAX,
  type NetworkImport,
  planImport,
  stepText,
} from './network-import.ts'

/** Shows the changes that a network file requires and their effect on access, and makes them. */
export function ImportPage() {
  const { wizards } = texts
  const { import: words } = pageTexts
  const refused = useMissingPermissionReason([])
  const planned = useSignal<NetworkImport | null>(null)
  const problem = useSignal<string | null>(null)
  const made = useSignal<number | null>(null)
  const isComparing = useSignal(false)
  const fileName = useSignal('')
  const reading = useRef(new AbortController())
  const choose = async (file: File): Promise<void> => {
    reading.current.abort()
    reading.current = new AbortController()
    const { signal } = reading.current
    planned.value = null
    problem.value = null
    fileName.value = file.name
    if (file.size > IMPORT_BYTES_MAX) {
      problem.value = words.tooLarge
      return
    }
    isComparing.value = true
    try {
      const plan = await planImport(await file.text(), signal)
      if (!signal.aborted) planned.value = plan
    } catch (error) {
      if (!(error instanceof CancelledError)) problem.value = sentenceOf(error)
    } finally {
      if (!signal.aborted) isComparing.value = false
    }
  }
  const run = async (plan: NetworkImport): Promise<void> => {
    made.value = 0
    try {
      await runImport(plan, (done) => (made.value = done))
      showToast(words.done(plan.steps.length))
    } catch (error) {
      problem.value = words.stopped(made.value ?? 0, plan.steps.length, sentenceOf(error))
    }
    made.value = null
    planned.value = null
  }
  const { value: plan } = planned
  return (
    <>
      <WizardHead name="import" lead={words.lead} />
      <section class="panel import" aria-label={wizards.titles.import}>
        <div class="panel-body form">
          {refused === null ? null : <Notice tone="warn">{refused}</Notice>}
          {problem.value === null ? null : <Notice tone="bad">{problem.value}</Notice>}
          <FileInput
            chosen={
              fileName.value === ''
                ? ''
                : words.chosen(visibleText(fileName.value), plan?.steps.length || null)
            }
            isBusy={made.value !== null}
            onFile={(file) => void choose(file)}
          />
          {plan === null && !isComparing.value ? (
            <ol class="how small">
              {words.how.map((step) => (
                <li key={step}>{step}</li>
              ))}
            </ol>
          ) : null}
          {isComparing.value ? <p class="faint small">{words.comparing}</p> : null}
          {plan === null ? null : <Planned plan={plan} />}
        </div>
        {plan === null || plan.steps.length === 0 ? null : (
          <div class="form-foot">
            <span class="faint small" role="status">
              {made.value === null ? '' : words.progress(made.value, plan.steps.length)}
            </span>
            {made.value === null ? <CancelWizard /> : null}
            <Button
              kind="primary"
              refused={refused}
              isBusy={made.value !== null}
              onClick={() => void run(plan)}
            >
              {words.button(plan.steps.length)}
            </Button>
          </div>
        )}
      </section>
    </>
  )
}

/** A file that the user chooses or drops. */
function FileInput(props: {
  /** Name of the chosen file, and what it changes; '' before one is chosen. */
  readonly chosen: string
  readonly isBusy: boolean
  readonly onFile: (file: File) => void
}) {
  const { chosen, isBusy, onFile } = props
  const { import: words } = pageTexts
  const take = (files: FileList | null | undefined): void => {
    const [file] = files ?? []
    if (file !== undefined && !isBusy) onFile(file)
  }
  return (
    <Field label={words.file} hint={words.fileHint}>
      {(ids) => (
        <div
          class={chosen === '' ? 'drop' : 'drop chosen-file'}
          onDragOver={(event) => event.preventDefault()}
          onDrop={(event) => {
            event.preventDefault()
            take(event.dataTransfer?.files)
          }}
        >
          {chosen === '' ? (
            <span class="soft" aria-hidden="true">
              {words.drop}
            </span>
          ) : (
            <strong role="status">{chosen}</strong>
          )}
          <input
            {...ids}
            type="file"
            accept=".yml,.yaml,.json"
            disabled={isBusy}
            onChange={({ currentTarget }) => {
              take(currentTarget.files)
              // Clears the input, so that the user can choose the same file again after editing it.
              currentTarget.value = ''
            }}
          />
        </div>
      )}
    </Field>
  )
}

function Planned({ plan }: { readonly plan: NetworkImport }) {
  const { import: words } = pageTexts
  const { faults, steps, previewed } = plan
  if (faults.length > 0) {
    return (
      <Notice tone="bad">
        {words.faults(faults.length)}
        <ul>
          {faults.map(({ line, problem }, at) => (
            <li key={at}>{visibleText(words.fault(line, problem))}</li>
          ))}
        </ul>
      </Notice>
    )
  }
  if (steps.length === 0) return <Notice>{words.noChange}</Notice>
  return (
    <>
      <section aria-label={words.changes(steps.length)}>
        <h2>{words.changes(steps.length)}</h2>
        <ul class="preview-rows import-steps" tabIndex={0}>
          {steps.map((step, at) => (
            <li key={at}>{visibleText(stepText(step))}</li>
          ))}
        </ul>
      </section>
      {previewed === null ? (
        <Notice tone="warn">{words.tooMany}</Notice>
      ) : (
        <AccessPreview
          changes={previewed.map(({ action, kind, id, data = null }) => ({
            action,
            collection: previewedCollection(kind),
            id,
            data,
          }))}
        />
      )}
    </>
  )
}

/** The shared code of `flotilla apply` reports refusals as whole sentences. */
function sentenceOf(error: unknown): string {
  return error instanceof CommandFailure ? error.message : failureText(error)
}

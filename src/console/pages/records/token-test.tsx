import { useSignal } from '@preact/signals'

import { hasPermission } from '../../app/management-document.ts'
import { FailureNotice } from '../../app/failure.tsx'
import { consolePath } from '../../app/navigation.ts'
import { consoleApiClient } from '../../app/console-state.ts'
import { visibleText } from '../../app/visible-text.ts'
import type { ExternalJwtSignerTested } from '../../client/served-types.ts'
import { Button } from '../../controls/button.tsx'
import { Field } from '../../controls/field.tsx'
import type { BadgeTone } from '../../controls/badge-tone.ts'
import { Badge, Notice } from '../../controls/status.tsx'
import { pageTexts } from '../../page-texts.ts'
import { texts } from '../../texts.ts'

type Check = ExternalJwtSignerTested['checks'][number]

const tones: Readonly<Record<string, BadgeTone>> = { passed: 'good', failed: 'bad' }

/**
 * Tests a token of a provider. The token stays in this component: it is in no draft, and not in the
 * address of the page.
 */
export function TokenTest({ signerId }: { readonly signerId: string }) {
  const { tokenTest } = pageTexts
  const token = useSignal('')
  const report = useSignal<ExternalJwtSignerTested | null>(null)
  const error = useSignal<unknown>(null)
  const isBusy = useSignal(false)
  const refused = hasPermission('admin')
    ? token.value.trim() === ''
      ? tokenTest.pasteFirst
      : null
    : texts.failure.notAllowed
  const run = (): void => {
    isBusy.value = true
    error.value = null
    consoleApiClient
      .served('POST /edge/management/v1/jwt-signer-setup/test', {
        body: { token: token.value, signerId },
        changesNothing: true,
        timeoutMs: 10_000,
      })
      .then(({ data }) => (report.value = data))
      .catch((failure: unknown) => {
        report.value = null
        error.value = failure
      })
      .finally(() => (isBusy.value = false))
      .catch(() => undefined)
  }
  return (
    <section class="panel" aria-labelledby="token-test">
      <div class="panel-head">
        <h2 id="token-test">{tokenTest.title}</h2>
      </div>
      <form
        class="panel-body form"
        onSubmit={(event) => {
          event.preventDefault()
          if (refused === null && !isBusy.value) run()
        }}
      >
        <p class="soft">{tokenTest.lead}</p>
        <Field label={tokenTest.token} hint={tokenTest.tokenHint}>
          {(ids) => (
            <textarea
              {...ids}
              class="input code"
              rows={4}
              autocomplete="off"
              spellcheck={false}
              value={token.value}
              onInput={({ currentTarget }) => (token.value = currentTarget.value)}
            />
          )}
        </Field>
        <div class="row">
          <Button type="submit" kind="primary" refused={refused} isBusy={isBusy.value}>
            {tokenTest.run}
          </Button>
        </div>
        <FailureNotice error={error.value} />
        {report.value === null ? null : <Report report={report.value} />}
      </form>
    </section>
  )
}

function Report({ report }: { readonly report: ExternalJwtSignerTested }) {
  const { tokenTest } = pageTexts
  const { checks, identity, logsIn, enrolls, claimNames } = report
  const failed = checks.find(({ state }) => state === 'failed')
  const names = claimNames.map((name) => visibleText(name))
  return (
    <>
      <Notice tone={logsIn ? 'good' : 'bad'}>
        {logsIn && identity !== null ? tokenTest.logsIn : tokenTest.refused(failed?.message ?? '')}{' '}
        {identity === null ? null : (
          <a href={consolePath('identities', identity.id)}>{visibleText(identity.name)}</a>
        )}
        {enrolls ? ` ${tokenTest.enrolls}` : ''}
      </Notice>
      <div class="table-wrap" tabIndex={0} role="group" aria-label={texts.table}>
        <table class="table even">
          <thead>
            <tr>
              {tokenTest.columns.map((title) => (
                <th key={title} scope="col">
                  {title}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {checks.map((check) => (
              <CheckRow key={check.check} check={check} />
            ))}
          </tbody>
        </table>
      </div>
      {names.length === 0 ? null : <p class="hint">{tokenTest.claims(names)}</p>}
    </>
  )
}

function CheckRow({ check }: { readonly check: Check }) {
  const { tokenTest } = pageTexts
  const shown = (value: string | null): string => (value === null ? '' : visibleText(value))
  return (
    <tr>
      <th scope="row">
        {tokenTest.checks[check.check] ?? check.check}
        {check.claim === null ? null : <span class="faint mono"> {shown(check.claim)}</span>}
      </th>
      <td>
        <Badge tone={tones[check.state] ?? 'plain'}>
          {tokenTest.states[check.state] ?? check.state}
        </Badge>
      </td>
      <td class="mono">{shown(check.found)}</td>
      <td class="mono">{shown(check.expected)}</td>
    </tr>
  )
}

import { clusterMembers } from '../../app/console-state.ts'
import { CopyText } from '../../controls/copy.tsx'
import { texts } from '../../texts.ts'
import type { RecordWriteRequest } from './record-data.ts'

/**
 * Shows the form's write request as a `curl` command. The session token is never shown; the command
 * contains a variable instead.
 */
export function CurlCommandPanel({
  call,
  isOpen = false,
}: {
  readonly call: RecordWriteRequest
  readonly isOpen?: boolean
}) {
  return (
    <details class="group" open={isOpen}>
      <summary>{texts.call.title}</summary>
      <CopyText label={texts.call.curl} text={curlCommand(call, clusterMembers.current.value)} />
    </details>
  )
}

/** The `curl` command for a write, with a placeholder for the session. */
export function curlCommand(
  { method, path, body, ifMatch }: RecordWriteRequest,
  origin: string,
): string {
  const lines = [
    `curl --fail-with-body --cacert ca.pem -X ${method} '${origin}${path}'`,
    `-H "net-session: $TOKEN"`,
    ...(ifMatch === undefined || ifMatch === null ? [] : [`-H 'if-match: ${ifMatch}'`]),
    ...(body === undefined
      ? []
      : [
          `-H 'content-type: application/json'`,
          `-d ${shellQuoted(JSON.stringify(body, null, 2))}`,
        ]),
  ]
  return lines.join(' \\\n  ')
}

function shellQuoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`
}

import type { ChangedFile, OptionChange, ReloadResult } from '../../api/host/reload-control.ts'
import { CommandFailure, EXIT_FAILED } from '../../controller/command-failure.ts'
import {
  validateResponse,
  booleanShape,
  listShape,
  nullableShape,
  objectShape,
  optionalShape,
  textShape,
} from '../client/response-shape.ts'
import { createOperationCaller } from '../client/connection.ts'
import { printJson, printLine } from '../terminal/output.ts'

const resultShape = objectShape<ReloadResult>({
  path: textShape,
  changed: listShape(
    objectShape<OptionChange>({
      key: textShape,
      from: nullableShape(textShape),
      to: nullableShape(textShape),
      isInForce: booleanShape,
    }),
  ),
  changedFiles: optionalShape(
    listShape(
      objectShape<ChangedFile>({
        key: textShape,
        path: textShape,
        isInForce: booleanShape,
        isRejected: booleanShape,
      }),
    ),
  ),
  refusedCertificates: nullableShape(textShape),
})

/**
 * `controller reload CONFIG` makes the running controller reload its configuration, and prints for
 * each changed option whether the controller uses the new value.
 * @throws {CommandFailure} exit 2 for an invalid configuration; 1 if the controller refuses it, or
 * rejects certificate files; 5 if the controller does not respond.
 */
export async function reloadController(
  path: string,
  options: { readonly json?: boolean },
): Promise<void> {
  const answer = await createOperationCaller({ config: path })({
    method: 'POST',
    path: '/fabric/v1/configuration/reload',
    isOfAny: false,
  })
  const result = validateResponse<ReloadResult>(path, resultShape, answer)
  if (options.json === true) printJson(result)
  else for (const line of resultLines(result)) printLine(line)
  const { refusedCertificates: refused } = result
  if (refused === null) return
  throw new CommandFailure(EXIT_FAILED, `certificate files rejected: ${refused}`)
}

function resultLines({ path, changed, changedFiles = [] }: ReloadResult): string[] {
  const lines = changed.map(({ key, from, to, isInForce }) => {
    const values = from === null || to === null ? '' : `: ${shown(from)} -> ${shown(to)}`
    return `${key}${values}, ${effectText(isInForce)}`
  })
  const files = changedFiles.map(
    ({ key, path: file, isInForce, isRejected }) =>
      `${key}: ${file} has changed, ${isRejected ? 'rejected' : effectText(isInForce)}`,
  )
  const all = [...lines, ...files]
  return all.length === 0 ? [`${path}: no option and no file has changed`] : all
}

function effectText(isInForce: boolean): string {
  return isInForce ? 'in force' : 'needs a restart'
}

function shown(value: string): string {
  return value === '' ? '(none)' : value
}

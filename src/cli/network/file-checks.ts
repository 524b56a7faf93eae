import { RequestBodyValidator } from '../../api/schemas/request-body-validator.ts'
import { usageFailure } from '../../controller/command-failure.ts'
import { requestSchema } from '../../entities/schema.ts'
import { errorMessage } from '../../lib/error-code.ts'
import { readStandardInput } from '../terminal/secret-input.ts'
import { readTextFile } from '../terminal/text-file.ts'
import type { BodyCheckFactory, FileFault } from './network-file.ts'
import { networkFileLimits } from './sections.ts'

/**
 * Checks bodies with the schemas of the API, so that a command reports a fault before it changes
 * anything.
 */
export function createSchemaChecks(): BodyCheckFactory {
  const validator = new RequestBodyValidator()
  return (entity) => validator.checkOf(requestSchema(entity, 'create'))
}

/**
 * @param path path of the file, or `-` for standard input.
 * @throws {CommandFailure} exit 2.
 */
export function readNetworkText(path: string): string {
  if (path === '-') return readStandardInput('the network', networkFileLimits.fileBytesMax)
  try {
    return readTextFile(path, networkFileLimits.fileBytesMax)
  } catch (error) {
    throw usageFailure(`${path} cannot be read (${errorMessage(error)})`)
  }
}

/** @throws {CommandFailure} exit 2, one line for each fault. */
export function requireNoFaults(path: string, faults: readonly FileFault[]): void {
  if (faults.length === 0) return
  const shown = faults.slice(0, networkFileLimits.faultsMax)
  const lines = shown.map(({ line, problem }) => `${path}: line ${line}: ${problem}`)
  const more = faults.length - shown.length
  if (more > 0) lines.push(`${path}: and ${more} more faults`)
  throw usageFailure(`nothing was changed\n${lines.join('\n')}`)
}

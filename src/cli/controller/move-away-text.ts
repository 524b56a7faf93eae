import type { ControllerConfig } from '../../config/controller/options.ts'
import { quoteShellWord } from '../terminal/output.ts'

/**
 * The sentence, and the files of a removed controller that a new join must not find at their paths.
 */
export function moveAwayText(
  { data, identity }: Pick<ControllerConfig, 'data' | 'identity'>,
  sentence: string,
): string {
  const paths = [data, identity.key, identity.cert].map(quoteShellWord).join(' ')
  return `${sentence}\n  move away: ${paths}`
}

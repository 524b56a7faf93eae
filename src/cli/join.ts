import type { ConfigFlags } from './config-from-flags.ts'
export interface JoinOptions extends ConfigFlags {
  readonly ticketFile: string
  readonly run: boolean
  readonly json?: boolean
}
export async function joinCluster(_config: string, _options: JoinOptions): Promise<void> {}

import type {
  ConsensusThreadCommand,
  ConsensusThreadEvent,
  ConsensusThreadLink,
  MainThreadLink,
} from '../../src/cluster/thread-channel.ts'
import type { Context, VirtualLoop } from './virtual-loop.ts'

/**
 * Links two threads of one process by a port: messages arrive in order, each in a separate event.
 */
export function linkThreads(
  loop: VirtualLoop,
  threads: { readonly main: Context; readonly raft: Context },
  onEvent: (event: ConsensusThreadEvent) => void,
): { readonly main: MainThreadLink; readonly host: ConsensusThreadLink } {
  let isOpen = true
  const close = (): void => {
    isOpen = false
  }
  const main: MainThreadLink = {
    onMessage: () => undefined,
    post: (command: ConsensusThreadCommand) => {
      loop.afterIn(threads.raft, 0, () => {
        if (isOpen) host.onMessage(command)
      })
    },
    close,
  }
  const host: ConsensusThreadLink = {
    onMessage: () => undefined,
    post: (event: ConsensusThreadEvent) => {
      onEvent(event)
      loop.afterIn(threads.main, 0, () => {
        if (isOpen) main.onMessage(event)
      })
    },
    close,
  }
  return { main, host }
}

import type { Command } from 'commander'

/** Adds the options that select the controller. */
export function addConnectionOptions(command: Command): Command {
  return command
    .option('--config <file>', 'configuration of a controller on this host; uses its admin socket')
    .option('--context <name>', 'context to use (default: the current one, without --config)')
    .option('--url <url>', 'a controller named to flotilla login, https://host:port')
    .option('--ca <file>', 'CA certificates to verify --url with; needs --session-file')
    .option(
      '--session-file <file>',
      "file (mode 0600) with an administrator's session token, or - for standard input; needs --ca",
    )
}

/** Adds the options `--context` and `--json` to a command that uses a context. */
export function addContextOption(command: Command): Command {
  return command
    .option('--context <name>', 'context to use (default: the current one)')
    .option('--json')
}

import { PassThrough } from 'node:stream'
import { expect, test } from 'vitest'

import { promptExactText, promptHidden, promptLine } from '../../src/cli/terminal/prompt.ts'

function terminal() {
  const modes: boolean[] = []
  const setRawMode = (isRaw: boolean): void => void modes.push(isRaw)
  const input = Object.assign(new PassThrough(), { isTTY: true, setRawMode })
  const output = new PassThrough()
  return { input, output, modes, shown: () => String(output.read() ?? '') }
}

test('a password prompt accepts corrections and does not show the input', async () => {
  const { shown, modes, ...at } = terminal()
  const asked = promptHidden('Password: ', at)
  for (const typed of ['secreX', '\x7f', 't', '\r']) at.input.write(typed)
  expect(await asked).toBe('secret')
  expect(shown()).toBe('Password: \n')
  expect(modes).toEqual([true, false])
})

test('a password prompt ends at ^C and restores the terminal', async () => {
  const { modes, ...at } = terminal()
  const asked = promptHidden('Password: ', at)
  at.input.write('half\x03')
  await expect(asked).rejects.toThrow('interrupted; nothing was changed')
  expect(modes).toEqual([true, false])
})

test('a line prompt trims white space, and returns an empty line at the end of its input', async () => {
  const { shown, ...at } = terminal()
  const asked = promptLine('Trust it? ', at)
  at.input.write(' yes \n')
  expect(await asked).toBe('yes')
  expect(shown()).toBe('Trust it? ')
  const ended = terminal()
  ended.input.end()
  expect(await promptLine('Trust it? ', ended)).toBe('')
})

test('a prompt for an exact text returns the typed text, and an empty text at the end of its input', async () => {
  const { shown, ...at } = terminal()
  const asked = promptExactText('remove ctrl3', at)
  at.input.write('remove ctrl2\n')
  expect(await asked).toBe('remove ctrl2')
  expect(shown()).toBe('type "remove ctrl3" to continue: ')
  const ended = terminal()
  ended.input.end()
  expect(await promptExactText('remove ctrl3', ended)).toBe('')
})

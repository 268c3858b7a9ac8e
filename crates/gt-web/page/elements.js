// Elements and tables. Names that users choose become text only, never markup.

/** Makes an element. Strings among its children become text. */
export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined) made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

/** Changes an element's text, if it differs: selections and screen readers are left alone. */
export function setText(of, text) {
  if (of.textContent !== text) of.textContent = text;
}

function setAttribute(of, name, value) {
  if (of.getAttribute(name) !== String(value)) of.setAttribute(name, value);
}

/**
 * Makes a table whose rows stay the same elements while their texts change.
 *
 * A column has a `title` and a function `text` of a row; with `link`, a function of a row, the text
 * is a link; with `part`, a fraction of 1, a bar is drawn beside it; with `actions`, there are buttons
 * in its place for the row, which `name` names. `kind` is `number`, which is aligned, `short`, which
 * is not broken into lines, or `act`, which only those see who may act.
 */
export function table(caption, columns, key, none) {
  // On phones rows are blocks, which would not be a table for screen readers without roles.
  const header = columns.map((column) => element('th', {
    role: 'columnheader', scope: 'col', class: column.kind,
  }, column.title));
  const body = element('tbody', { role: 'rowgroup' });
  const whole = element('table', { role: 'table' },
    element('caption', {}, caption),
    element('thead', { role: 'rowgroup' }, element('tr', { role: 'row' }, ...header)), body);
  const empty = element('p', { class: 'none' }, none);
  const rows = new Map();

  function add(of) {
    const cells = columns.map((column) => {
      const text = element(column.link ? 'a' : 'span');
      const bar = column.part ? element('meter', { min: 0, max: 1, 'aria-hidden': 'true' }) : null;
      const cell = element('td', {
        role: 'cell', 'data-title': column.title, class: column.kind,
      }, ...(bar ? [bar] : []), text);
      const buttons = (column.actions ?? []).map((action) => {
        const button = element('button', { type: 'button', 'aria-label': `${action.title} ${column.name(of)}` }, action.title);
        button.addEventListener('click', () => action.press(row.of));
        button.hidden = action.isFor ? !action.isFor(of) : false;
        return button;
      });
      cell.append(...buttons);
      return { cell, text, bar };
    });
    const row = { of, cells, node: element('tr', { role: 'row' }, ...cells.map(({ cell }) => cell)) };
    rows.set(key(of), row);
    return row;
  }

  function update(list) {
    const seen = new Set(list.map(key));
    for (const [of, row] of rows) {
      if (!seen.has(of)) {
        row.node.remove();
        rows.delete(of);
      }
    }
    list.forEach((of, place) => {
      const row = rows.get(key(of)) ?? add(of);
      row.of = of;
      columns.forEach((column, at) => {
        const { text, bar, cell } = row.cells[at];
        setText(text, column.text(of));
        if (column.link) setAttribute(text, 'href', column.link(of));
        if (bar) setAttribute(bar, 'value', column.part(of).toFixed(3));
        if (column.isBad) cell.classList.toggle('bad', column.isBad(of));
      });
      if (body.children[place] !== row.node) body.insertBefore(row.node, body.children[place] ?? null);
    });
    whole.hidden = list.length === 0;
    empty.hidden = list.length > 0;
  }

  return { node: element('div', { class: 'table' }, whole, empty), update };
}

/** Makes a list of names with values, which are filled by name; those of `wide` names are long. */
export function facts(names, wide = []) {
  const values = new Map(names.map((name) => [name, element('dd')]));
  const node = element('dl', { class: 'facts' },
    ...names.map((name) => element('div', { class: wide.includes(name) ? 'wide' : null }, element('dt', {}, name), values.get(name))));
  return { node, update: (given) => names.forEach((name) => setText(values.get(name), given[name] ?? '–')) };
}

/** Makes a selection with a label; `changed` is called with the chosen value. */
export function choice(label, id, changed) {
  const select = element('select', { id });
  select.addEventListener('change', () => changed(select.value));
  const node = element('p', { class: 'choice' }, element('label', { for: id }, label), ' ', select);
  function update(options, chosen) {
    const made = [...select.options].map((of) => `${of.value}\n${of.text}`).join('\n\n');
    const wanted = options.map(([value, text]) => `${value}\n${text}`).join('\n\n');
    if (made !== wanted) select.replaceChildren(...options.map(([value, text]) => element('option', { value }, text)));
    if (select.value !== chosen) select.value = chosen;
  }
  return { node, update };
}
